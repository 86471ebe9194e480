"""What a node's process takes for itself: memory and its directories."""

import fcntl
import os


class CannotStart(Exception):
    """Why a node cannot start, in one sentence."""


class UnusableDirectory(CannotStart):
    """A log directory whose disk does not work; a node may start without it."""


def keep_freed_memory() -> None:
    """Let malloc keep some freed memory instead of returning it after every large frame.

    glibc learns how much from the largest block that it has seen freed. Page faults would otherwise
    cost more than all the rest of receiving a frame of a megabyte; this block itself is never
    touched and costs nothing.
    """
    bytes(8 * 1024 * 1024)


def lock_directory(path: str) -> int:
    """Keep others out, Apache Kafka included. -> the descriptor that holds the lock."""
    try:
        os.makedirs(path, exist_ok=True)
        lock = os.open(f"{path}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        reason = f"the log directory {path} cannot be used: {error.strerror}"
        raise UnusableDirectory(reason) from None
    try:
        # Java's file locks are those of fcntl, not of flock.
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CannotStart(f"the log directory {path} is in use by another process") from None
    return lock
