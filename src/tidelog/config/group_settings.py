"""The settings of the group coordinator, with Kafka's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long the first JoinGroup of a member may wait; a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    session_timeout_ms: int = 45_000
    """`group.share.session.timeout.ms`"""
    heartbeat_interval_ms: int = 5_000
    """`group.share.heartbeat.interval.ms`"""
    assignment_interval_ms: int = 1_000
    """`group.share.assignment.interval.ms`"""
    max_size: int = 200
    """`group.share.max.size`"""
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The smallest and largest value of each key that a group may set."""

    def of_group(self, configs: Mapping[str, str]) -> "ShareGroupSettings":
        """The settings of a group with this dynamic configuration."""
        if not configs:
            return self
        return replace(
            self,
            session_timeout_ms=self._own(
                configs, "share.session.timeout.ms", self.session_timeout_ms
            ),
            heartbeat_interval_ms=self._own(
                configs, "share.heartbeat.interval.ms", self.heartbeat_interval_ms
            ),
            assignment_interval_ms=self._own(
                configs, "share.assignment.interval.ms", self.assignment_interval_ms
            ),
        )

    def _own(self, configs: Mapping[str, str], name: str, default: int) -> int:
        if name not in configs:
            return default
        smallest, largest = self.limits.get(name, (0, 2**31 - 1))
        return min(max(int(configs[name]), smallest), largest)


class MigrationPolicy(Enum):
    """`group.consumer.migration.policy`: the directions in which groups may change protocol."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """The settings of consumer groups (KIP-848)."""

    session_timeout_ms: int = 45_000
    """`group.consumer.session.timeout.ms`"""
    heartbeat_interval_ms: int = 5_000
    """`group.consumer.heartbeat.interval.ms`"""
    assignment_interval_ms: int = 1_000
    """`group.consumer.assignment.interval.ms`"""
    regex_refresh_interval_ms: int = 600_000
    """`group.consumer.regex.refresh.interval.ms`"""
    max_size: int = 2**31 - 1
    """`group.consumer.max.size`"""
    assignors: tuple[str, ...] = ("uniform", "range")
    """`group.consumer.assignors`; the first one is the default."""
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`"""
    classic_max_size: int = 2**31 - 1
    """`group.max.size`, which limits the groups that may become classic again."""
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The smallest and largest value of each key that a group may set."""

    def of_group(self, configs: Mapping[str, str]) -> "ConsumerGroupSettings":
        """The settings of a group with this dynamic configuration, within the broker's limits."""
        if not configs:
            return self
        return replace(
            self,
            session_timeout_ms=self._own(
                configs, "consumer.session.timeout.ms", self.session_timeout_ms
            ),
            heartbeat_interval_ms=self._own(
                configs, "consumer.heartbeat.interval.ms", self.heartbeat_interval_ms
            ),
            assignment_interval_ms=self._own(
                configs, "consumer.assignment.interval.ms", self.assignment_interval_ms
            ),
        )

    def _own(self, configs: Mapping[str, str], name: str, default: int) -> int:
        if name not in configs:
            return default
        smallest, largest = self.limits.get(name, (0, 2**31 - 1))
        return min(max(int(configs[name]), smallest), largest)


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
    consumer: ConsumerGroupSettings = ConsumerGroupSettings()
    """The settings of consumer groups."""
    share: ShareGroupSettings = field(default_factory=ShareGroupSettings)
