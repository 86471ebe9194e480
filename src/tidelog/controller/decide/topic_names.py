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


class Unified:
    """Topics by the names that they share in metrics, where a dot is an underscore."""

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing
        self._by_unified: dict[str, str] | None = None

    def colliding(self, name: str) -> str | None:
        """The topic, first by name, that would be mistaken for this one."""
        if "." not in name and "_" not in name:
            return None
        if self._by_unified is None:
            # Once for all topics of a request: with many topics each look at all takes long.
            self._by_unified = {}
            for other in sorted(self._existing, reverse=True):
                self._by_unified[other.replace(".", "_")] = other
        found = self._by_unified.get(name.replace(".", "_"))
        return None if found == name else found
