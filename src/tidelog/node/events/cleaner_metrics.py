"""The metrics of the log cleaner, with the names that the JMX exporter gives to Kafka's metrics."""

from collections.abc import Iterator, Mapping

from tidelog.model.ids import Millis
from tidelog.model.metrics import Gauge, Metric

_CLEANER = "kafka_log_logcleaner"
_MANAGER = "kafka_log_logcleanermanager"


class CleanerCounters:
    """What the cleaner has done since the start of the node."""

    __slots__ = (
        "bytes_read",
        "bytes_written",
        "last_pass_ms",
        "looked_at",
        "max_compaction_delay_ms",
        "max_dirty_percent",
        "passes",
    )

    def __init__(self) -> None:
        self.passes = 0
        self.bytes_read = 0
        """The bytes that the last pass read."""
        self.bytes_written = 0
        """The bytes that the last pass wrote."""
        self.last_pass_ms: Millis = 0
        self.looked_at: Millis | None = None
        self.max_dirty_percent = 0
        self.max_compaction_delay_ms: Millis = 0

    def passed(self, bytes_read: int, bytes_written: int, took_ms: Millis) -> None:
        self.passes += 1
        self.bytes_read, self.bytes_written = bytes_read, bytes_written
        self.last_pass_ms = took_ms


def of_cleaner(
    counters: CleanerCounters, uncleanable: Mapping[str, int], now: Millis
) -> Iterator[Metric]:
    """`uncleanable` is the number of logs that cannot be cleaned, by log directory."""
    looked_at = now if counters.looked_at is None else counters.looked_at
    recopied = 100 * counters.bytes_written // counters.bytes_read if counters.bytes_read else 0
    for name, text, value in (
        (
            f"{_MANAGER}_max_dirty_percent",
            "The largest share of dirty bytes in a compacted log.",
            counters.max_dirty_percent,
        ),
        (
            f"{_MANAGER}_time_since_last_run_ms",
            "Time since the cleaner last looked for dirty logs.",
            now - looked_at,
        ),
        (
            f"{_CLEANER}_cleaner_recopy_percent",
            "The share of bytes that the last pass kept.",
            recopied,
        ),
        (
            f"{_CLEANER}_max_clean_time_secs",
            "The duration of the last pass.",
            counters.last_pass_ms // 1_000,
        ),
        (
            f"{_CLEANER}_max_compaction_delay_secs",
            "How far the oldest dirty record exceeds max.compaction.lag.ms.",
            counters.max_compaction_delay_ms // 1_000,
        ),
    ):
        yield Gauge(name, text, (((), value),))
    yield Gauge(
        f"{_MANAGER}_uncleanable_partitions_count",
        "Logs that cannot be cleaned.",
        tuple(((("logDirectory", path),), count) for path, count in uncleanable.items()),
    )
