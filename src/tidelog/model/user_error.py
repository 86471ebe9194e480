"""Errors that a user can fix."""


class UserError(Exception):
    """One sentence for the user: the command prints it without a traceback and exits with 1."""


class NoBrokerReached(UserError):
    """No broker answers at any address that a client knows."""
