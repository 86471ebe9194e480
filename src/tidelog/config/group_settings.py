"""The settings of the group coordinator, with Kafka's defaults."""

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long the first JoinGroup of a member may wait; a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    min_session_timeout_ms: int = 6_000
    """`group.min.session.timeout.ms`"""
    max_session_timeout_ms: int = 1_800_000
    """`group.max.session.timeout.ms`"""
    initial_rebalance_delay_ms: int = 3_000
    """`group.initial.rebalance.delay.ms`"""
    max_size: int = 2**31 - 1
    """`group.max.size`"""
    offset_metadata_max_bytes: int = 4_096
    """`offset.metadata.max.bytes`; counts UTF-16 code units, as in Kafka."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """`offsets.retention.minutes`"""
    offsets_retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`"""
    offsets_commit_timeout_ms: int = 5_000
    """`offsets.commit.timeout.ms`; limits the wait for every write of the coordinator."""
