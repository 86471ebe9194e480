"""What a command tells its user when it cannot go on."""


class CommandFailed(Exception):
    """One sentence for the user; the command ends with status 1 and no traceback."""
