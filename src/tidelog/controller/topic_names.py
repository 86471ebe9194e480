"""Which topic names are allowed, in Kafka's rules and words."""

from collections.abc import Iterable

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
MAX_LENGTH = 249
"""A directory name may have 255 bytes, and a partition's adds a dash and a number."""


def name_problem(name: str) -> str | None:
    """Why a topic may not have this name; None if it may."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than "
            f"the max allowed length {MAX_LENGTH}"
        )
    if not _ALLOWED.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def colliding_topic(name: str, existing: Iterable[str]) -> str | None:
    """A topic whose name is the same once dots are underscores, as they are in metric names."""
    if "." not in name and "_" not in name:
        return None
    unified = name.replace(".", "_")
    collisions = (
        other
        for other in existing
        if len(other) == len(name) and other != name and other.replace(".", "_") == unified
    )
    return min(collisions, default=None)
