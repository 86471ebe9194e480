"""What a node has counted since it started: plain numbers, read when somebody asks for metrics.

Counting is a matter of nanoseconds, so it is always done, whether anyone asks or not.
"""

from bisect import bisect_left
from collections import defaultdict

from tidelog.model.ids import Millis

BOUNDS_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
"""Up to how long a request took, for each place of a histogram but the last."""


class RequestTimes:
    """How long the requests of one API took, until their answers were ready to be sent."""

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
        """Of record batches that producers wrote."""
        self.messages_in = 0
        self.bytes_out = 0
        """Of record batches that consumers fetched."""
        self.replication_bytes_out = 0
        """Of record batches that followers fetched."""
        self.requests: defaultdict[int, RequestTimes] = defaultdict(RequestTimes)
        """By API key."""
        self.isr_shrinks = 0
        """That this node asked for as leader, and got."""
        self.isr_expands = 0
        self.failed_isr_updates = 0
        self.elections = 0
        """That this node decided on as active controller."""
        self.election_ms: Millis = 0
        """From each of those decisions until it was committed, added up."""
        self.unclean_elections = 0
        self.events_written = 0
        self.events_lost = 0
