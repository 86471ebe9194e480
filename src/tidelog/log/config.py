"""The topic configuration that a log uses, with Kafka's names and defaults."""

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.ids import Millis

UNLIMITED = (1 << 63) - 1
"""The largest long, which means "never" or "no limit" in Kafka."""

LARGEST_BATCH = (1 << 31) - 1 - (16 << 20)
"""The largest batch that a fetch response can carry. The size of a response is a signed 4-byte
number, and 16 MiB of that size are reserved for the other fields. A larger batch could be appended
but never fetched (F61).
"""

MILLION = 1_000_000

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"


class StoredCodec(NamedTuple):
    """The codec in which a topic stores its batches, and its level (None: the codec's default)."""

    name: str
    level: int | None = None


@dataclass(frozen=True, slots=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: Millis = 7 * 24 * 3_600_000
    segment_jitter_ms: Millis = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: Millis = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    max_message_bytes: int = 1024 * 1024 + 12
    flush_messages: int = UNLIMITED
    flush_ms: Millis = UNLIMITED
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: Millis = UNLIMITED
    message_timestamp_after_max_ms: Millis = 3_600_000
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    file_delete_delay_ms: Millis = 60_000
    delete_retention_ms: Millis = 24 * 3_600_000
    min_cleanable_dirty_millionths: int = MILLION // 2
    min_compaction_lag_ms: Millis = 0
    max_compaction_lag_ms: Millis = UNLIMITED
    producer_id_expiration_ms: Millis = 24 * 3_600_000
    stored_codec: StoredCodec | None = None
    """None if batches are stored as the producer compressed them (compression.type=producer)."""

    @property
    def largest_batch(self) -> int:
        """The largest batch that may be appended."""
        return min(self.max_message_bytes, self.segment_bytes)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> Millis:
        """The age at which a segment rolls.

        A record of a compacted topic must leave the active segment within max.compaction.lag.ms.
        """
        if self.is_compacted:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def stamps_append_time(self) -> bool:
        return self.message_timestamp_type == LOG_APPEND_TIME
