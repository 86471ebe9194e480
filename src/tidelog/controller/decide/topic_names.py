"""Validation of topic names, with Kafka's rules and messages."""

from collections.abc import Iterable

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
MAX_LENGTH = 249
"""The longest topic name. A directory name adds a dash and a number, up to 255 bytes in total."""


def name_problem(name: str) -> str | None:
    """The reason why a topic name is invalid; None if it is valid."""
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


class MetricNames:
    """The existing topics by metric name, which is the topic name with underscores for dots."""

    def __init__(self, existing: Iterable[str]) -> None:
        self._existing = existing
        self._by_metric_name: dict[str, str] | None = None

    def colliding(self, name: str) -> str | None:
        """The first existing topic, in order of name, that has the same metric name."""
        if "." not in name and "_" not in name:
            return None
        if self._by_metric_name is None:
            # Build this map once per request, because scanning all topics for each new topic is
            # slow.
            self._by_metric_name = {}
            for other in sorted(self._existing, reverse=True):
                self._by_metric_name[other.replace(".", "_")] = other
        found = self._by_metric_name.get(name.replace(".", "_"))
        return None if found == name else found
