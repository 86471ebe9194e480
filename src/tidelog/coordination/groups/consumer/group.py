"""A consumer group: its epoch, its members, their target assignment, and indexes over them.

Only `replay` changes a group; decisions read it. A partition has at most one owner, and no decision
gives a partition to a member while another one owns it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidelog.coordination.groups.consumer import offset_checks
from tidelog.coordination.groups.consumer.assignors.hash_order import member_order
from tidelog.coordination.groups.consumer.assignors.subscriptions import Assignment
from tidelog.coordination.groups.consumer.member import ConsumerMember, MemberState
from tidelog.coordination.groups.consumer.records import NO_METADATA_HASH, ConsumerGroupRecord
from tidelog.coordination.groups.consumer.tombstones import group_tombstones
from tidelog.coordination.runtime.decision import Instant
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicId

INITIAL_EPOCH = 1
NO_TARGET_EPOCH = -1

EMPTY_ASSIGNMENT: Assignment = {}


class ConsumerGroupState(Enum):
    """The states of a group, with the names that Kafka's tools print."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression matched, in one version of the metadata."""

    topics: frozenset[str]
    version: int
    timestamp: Millis


class ConsumerGroup:
    type_name = "consumer"
    listed_protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = INITIAL_EPOCH
        self.metadata_hash = NO_METADATA_HASH
        self.target_epoch = INITIAL_EPOCH
        self.target_timestamp: Millis = 0
        self.targets: dict[str, Assignment] = {}
        self.members: dict[str, ConsumerMember] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether the log contains a record of Kafka 4.0 that must be deleted."""
        self.static_members: dict[str, str] = {}
        """The member id of each instance id."""
        self._owners: dict[tuple[TopicId, int], str] = {}
        self.names: Counter[str] = Counter()
        """The number of members that subscribe to each topic by its name."""
        self.regexes: Counter[str] = Counter()
        self.server_assignors: Counter[str] = Counter()
        self.classic_protocols: Counter[str] = Counter()
        self.classic_members = 0

    # -- Reading -----------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, EMPTY_ASSIGNMENT)

    def target_of(self, member: ConsumerMember) -> Assignment:
        """The target of a member; a static member inherits it from the one that it replaces."""
        if member.instance_id is None:
            return self.target(member.member_id)
        holder = self.static_members.get(member.instance_id)
        return EMPTY_ASSIGNMENT if holder is None else self.target(holder)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        holder = None if instance_id is None else self.static_members.get(instance_id)
        return None if holder is None else self.members[holder]

    def owner(self, topic_id: TopicId, partition: int) -> str | None:
        """The member that owns the partition or must still give it up."""
        return self._owners.get((topic_id, partition))

    def subscribed_topics(self) -> frozenset[str]:
        """All topics that members subscribe to, by name or by regular expression."""
        return frozenset(self.names).union(*(found.topics for found in self.resolved.values()))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        resolved = None if member.regex is None else self.resolved.get(member.regex)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members ask for."""
        return most_common(self.server_assignors) or default

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether a partition of the member's target still has another owner."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {})
            and self.owner(topic_id, partition) is not None
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    # -- As a group of any kind --------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int | None
    ) -> ErrorCode:
        return offset_checks.check_commit(self.members, member_id, epoch, version)

    def check_committed_partition(
        self, member_id: str, epoch: int, topic_id: TopicId, partition: int
    ) -> ErrorCode:
        return offset_checks.check_partition(self.members, member_id, epoch, topic_id, partition)

    def commit_changes(self, member_id: str, at: Instant) -> tuple[Any, ...]:
        return ()  # only heartbeats renew a session

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        return offset_checks.check_fetch(self.members, member_id, epoch)

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.none

    def check_delete(self) -> ErrorCode:
        return ErrorCode.none if self.is_empty else ErrorCode.non_empty_group

    @property
    def is_removable(self) -> bool:
        return self.is_empty

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.names or any(topic in one.topics for one in self.resolved.values())

    def unused_since(self, commit_timestamp: Millis) -> Millis | None:
        return commit_timestamp

    def tombstones(self) -> list[ConsumerGroupRecord]:
        return group_tombstones(self.group_id, tuple(self.members), tuple(self.resolved))

    # -- Replaying ---------------------------------------------------------------------------------

    def put_member(self, member: ConsumerMember) -> None:
        self._unindex(self.members.get(member.member_id))
        self.members[member.member_id] = member
        for owned in member.owned():
            self._owners[owned] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count(member, 1)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._unindex(member)
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _unindex(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        for owned in member.owned():
            if self._owners.get(owned) == member.member_id:
                del self._owners[owned]
        self._count(member, -1)

    def _count(self, member: ConsumerMember, by: int) -> None:
        add(self.names, member.topic_names, by)
        add(self.regexes, () if member.regex is None else (member.regex,), by)
        assignor = member.server_assignor
        add(self.server_assignors, () if assignor is None else (assignor,), by)
        if member.classic is not None:
            self.classic_members += by
            add(
                self.classic_protocols,
                (protocol.name for protocol in member.classic.supported_protocols),
                by,
            )


def add(counts: Counter[str], keys: Iterable[str], by: int) -> None:
    """Change counts, and drop the keys that reach zero."""
    for key in keys:
        counts[key] += by
        if counts[key] == 0:
            del counts[key]


def most_common(counts: Mapping[str, int]) -> str | None:
    """The key with the highest count; of several, the one that Kafka's hash table has first."""
    return max(member_order(counts), key=lambda key: counts[key], default=None)
