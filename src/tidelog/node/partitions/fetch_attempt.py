"""The result of one attempt to answer a fetch."""

from typing import NamedTuple

from tidelog.model.disk import FileSlice
from tidelog.model.effects import FetchResult


class FetchAttempt(NamedTuple):
    results: list[FetchResult]
    is_enough: bool
    """Whether to answer with these results now."""
    size: int
    """The size of the records in bytes."""
    cold: tuple[FileSlice, ...] = ()
    """Bytes to read into the page cache first. The results for their partitions contain no records
    yet.
    """
