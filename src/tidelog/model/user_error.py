"""Errors that a user can fix."""


class UserError(Exception):
    """An error with one sentence for the user. The command prints the sentence without a traceback
    and exits with 1."""


class NoBrokerReached(UserError):
    """No broker answers at any address that a client knows."""
