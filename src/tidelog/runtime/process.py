"""Process-wide resources of a node: memory and log directories."""

import fcntl
import os


class CannotStart(Exception):
    """Raised if a node cannot start; the message is one sentence."""


class UnusableDirectory(CannotStart):
    """A log directory whose disk does not work; a node may start without it."""


def keep_freed_memory() -> None:
    """Let malloc keep some freed memory instead of returning it after every large frame.

    glibc keeps freed memory up to a threshold, which grows to the largest block that was freed. To
    raise the threshold, this function allocates a large block and frees it at once. The block is
    never touched, so it costs no memory. With the default threshold, most of the cost of receiving
    a frame of one megabyte is page faults.
    """
    bytes(8 * 1024 * 1024)


def lock_directory(path: str) -> int:
    """Lock a directory against other processes, including Kafka brokers; returns a descriptor."""
    try:
        os.makedirs(path, exist_ok=True)
        lock = os.open(f"{path}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        reason = f"the log directory {path} cannot be used: {error.strerror}"
        raise UnusableDirectory(reason) from None
    try:
        # Java's file locks use fcntl, not flock.
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CannotStart(f"the log directory {path} is in use by another process") from None
    return lock
