"""The counters of a node since its start, read when metrics are requested.

Counting takes nanoseconds and is always on.
"""

from bisect import bisect_left
from collections import defaultdict

from tidelog.model.ids import Millis

BOUNDS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
"""The upper bounds of a histogram's buckets; the last bucket has no upper bound."""


class RequestTimes:
    """The durations of one API's requests, from receiving the request to finishing the response."""

    __slots__ = ("places", "total_ms")

    def __init__(self) -> None:
        self.places = [0] * (len(BOUNDS_MS) + 1)
        self.total_ms: Millis = 0

    def took(self, ms: Millis) -> None:
        self.places[bisect_left(BOUNDS_MS, ms)] += 1
        self.total_ms += ms


class Counters:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "election_ms",
        "elections",
        "events_lost",
        "events_written",
        "failed_isr_updates",
        "isr_expands",
        "isr_shrinks",
        "messages_in",
        "replication_bytes_out",
        "requests",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        """The bytes of record batches that producers wrote."""
        self.messages_in = 0
        self.bytes_out = 0
        """The bytes of record batches that consumers fetched."""
        self.replication_bytes_out = 0
        """The bytes of record batches that followers fetched."""
        self.requests: defaultdict[int, RequestTimes] = defaultdict(RequestTimes)
        """Request durations by API key."""
        self.isr_shrinks = 0
        """The number of ISR shrinks that this node requested and the controller accepted."""
        self.isr_expands = 0
        self.failed_isr_updates = 0
        self.elections = 0
        """The number of elections that this node decided as active controller."""
        self.election_ms: Millis = 0
        """The sum of the times from the decision on an election to its commit."""
        self.unclean_elections = 0
        self.events_written = 0
        self.events_lost = 0
