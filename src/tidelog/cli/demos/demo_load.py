"""The producer of `tidelog demo`, in its own thread, and the count of its records.

Records are numbered from 0, and only one batch is in flight at a time. The acknowledged records are
therefore always 0..acknowledged-1.
"""

import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tidelog.cli.demos.writing import Writing
from tidelog.client.client import Client
from tidelog.client.fetcher import Fetcher
from tidelog.client.log_offsets import EARLIEST, LATEST
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.protocol.records.records import Record

BATCH = 10
PAUSE_SECONDS = 0.01
ANSWER_SECONDS = 5.0


class Tally(NamedTuple):
    acknowledged: int
    lost: int
    duplicated: int

    @property
    def is_clean(self) -> bool:
        return self.acknowledged > 0 and self.lost == self.duplicated == 0


def tally(acknowledged: int, read: Iterable[int]) -> Tally:
    """Compare the records 0..acknowledged-1 with the records that were read."""
    times = Counter(read)
    lost = sum(number not in times for number in range(acknowledged))
    return Tally(acknowledged, lost, sum(count - 1 for count in times.values()))


class Load(Writing):
    """An idempotent producer that writes with acks=all until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self._bootstrap = bootstrap
        self._topic = topic
        self._times: list[float] = []

    def longest_wait_ms(self, since: float, until: float) -> int:
        """The longest time between two acknowledgements, the second of which is in this period."""
        times = list(self._times)
        waits = [after - before for before, after in pairwise(times) if since <= after <= until]
        return round(max(waits, default=0.0) * 1000)

    def has_written_since(self, moment: float) -> bool:
        return bool(self._times) and self._times[-1] > moment

    def write(self) -> None:
        with Client(self._bootstrap, ANSWER_SECONDS) as client:
            producer = Producer(client, self._topic, acks=ACKS_ALL, compression="none")
            while self.goes_on:
                producer.send(self._next_batch(), 0)
                self.acknowledged += BATCH
                self._times.append(time.monotonic())
                time.sleep(PAUSE_SECONDS)

    def _next_batch(self) -> list[Record]:
        now = time.time_ns() // 1_000_000
        first = self.acknowledged
        return [Record(None, b"%d" % number, now) for number in range(first, first + BATCH)]


def read_back(client: Client, topic: str) -> list[int]:
    """The numbers of all records that a consumer can read."""
    fetcher = Fetcher(client, topic)
    client.partitions(topic)
    fetcher.start([0], EARLIEST)
    end = fetcher.end_of(0, LATEST)
    numbers: list[int] = []
    while fetcher.positions[0] < end:
        numbers += (int(one.record.value or b"") for one in fetcher.poll())
    return numbers
