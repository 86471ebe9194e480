"""The lines of kafka-producer-perf-test.sh and kafka-consumer-perf-test.sh.

Times are arguments, in milliseconds, so that the lines can be tested.
"""

from dataclasses import dataclass, field
from datetime import datetime

REPORT_MS = 5000
MEGABYTE = 1024 * 1024
CONSUMER_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
REBALANCE_MS = 0
"""The command reads without a group, so it never waits for a rebalance."""


@dataclass(slots=True)
class ProducerStats:
    """The latencies of sent records, in total and since the last report."""

    started: int
    report_ms: int = REPORT_MS
    name: str = ""
    latencies: list[int] = field(default_factory=list)
    size: int = 0
    _reported: int = 0
    _reported_size: int = 0
    _reported_at: int = 0

    def __post_init__(self) -> None:
        self._reported_at = self.started

    def sent(self, latencies: list[int], size: int, now: int) -> str | None:
        """Add records and their size in bytes; returns a line if a report is due."""
        self.latencies += latencies
        self.size += size
        if now - self._reported_at < self.report_ms:
            return None
        window = self.latencies[self._reported :]
        elapsed = max(1, now - self._reported_at)
        line = (
            f"{len(window)} records sent, {1000 * len(window) / elapsed:.1f} records/sec "
            f"({_megabytes_per_second(self.size - self._reported_size, elapsed):.2f} MB/sec), "
            f"{sum(window) / len(window):.1f} ms avg latency, {max(window):.1f} ms max latency."
        )
        self._reported, self._reported_size = len(self.latencies), self.size
        self._reported_at = now
        return line

    def total(self, now: int) -> str:
        elapsed = max(1, now - self.started)
        count = len(self.latencies)
        ordered = sorted(self.latencies)
        half, most, nearly, all_but = (
            ordered[min(count - 1, int(share * count))] for share in (0.5, 0.95, 0.99, 0.999)
        )
        return (
            f"{count}{self.name} records sent, {1000 * count / elapsed:f} records/sec "
            f"({_megabytes_per_second(self.size, elapsed):.2f} MB/sec), "
            f"{sum(ordered) / count:.2f} ms avg latency, {ordered[-1]:.2f} ms max latency, "
            f"{half} ms 50th, {most} ms 95th, {nearly} ms 99th, {all_but} ms 99.9th."
        )


def consumer_head(*, detailed: bool) -> str:
    return f"{'time, threadId' if detailed else 'start.time, end.time'}, {CONSUMER_COLUMNS}"


def consumer_total(started: int, ended: int, size: int, count: int) -> str:
    return f"{_time(started)}, {_time(ended)}, {_amounts(started, ended, size, count, size, count)}"


def consumer_interval(
    started: int, ended: int, size: int, count: int, *, new_size: int, new_count: int
) -> str:
    """The line of an interval: sums since the beginning, and rates of the interval."""
    return f"{_time(ended)}, 0, {_amounts(started, ended, size, count, new_size, new_count)}"


def _amounts(started: int, ended: int, size: int, count: int, new_size: int, new_count: int) -> str:
    elapsed = max(1, ended - started)
    megabytes = _megabytes_per_second(new_size, elapsed)
    records = 1000 * new_count / elapsed
    return (
        f"{size / MEGABYTE:.4f}, {megabytes:.4f}, {count}, {records:.4f}, "
        f"{REBALANCE_MS}, {elapsed - REBALANCE_MS}, {megabytes:.4f}, {records:.4f}"
    )


def _megabytes_per_second(size: int, elapsed_ms: int) -> float:
    return 1000 * size / elapsed_ms / MEGABYTE


def _time(milliseconds: int) -> str:
    whole = datetime.fromtimestamp(milliseconds // 1000)
    return f"{whole:%Y-%m-%d %H:%M:%S}:{milliseconds % 1000:03}"
