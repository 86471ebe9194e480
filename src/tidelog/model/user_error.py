"""Failures that a user can do something about."""


class UserError(Exception):
    """One sentence for the user: a command prints it and exits with status 1, no traceback."""
