"""A classic group: its members, its generation and its state, all with Kafka's names.

The class holds the rules that concern one group only. The modules `joining`, `rebalancing` and
`syncing` change a copy of a group, and decide on answers, writes and timers. Members are kept in
join order, so that every choice among them is deterministic.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self

from tidelog.coordination.groups.classic.member import ClassicMember, Protocol
from tidelog.coordination.groups.classic.subscription import (
    CONSUMER_PROTOCOL_TYPE,
    subscribed_topics,
)
from tidelog.coordination.groups.classic.timeouts import SessionTimeout
from tidelog.coordination.groups.kind import GroupRecord
from tidelog.coordination.records import GroupMetadataKey, GroupMetadataValue
from tidelog.coordination.runtime.decision import Instant
from tidelog.coordination.timers import SetTimer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis, TopicId

CLASSIC = "classic"

_GROUP_ID_NOT_FOUND_SINCE = 9


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_PREVIOUS = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    },
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.DEAD: set(GroupState),
}


@dataclass(slots=True)
class ClassicGroup:
    group_id: str
    state: GroupState
    state_timestamp: Millis | None
    """When the group entered its state; None if an old record did not include the time."""
    generation: int = 0
    protocol_type: str | None = None
    """None for a simple group, whose consumers commit offsets without joining."""
    protocol_name: str | None = None
    leader_id: str | None = None
    previous_state: GroupState = GroupState.DEAD
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by group instance id."""
    pending_joins: dict[str, None] = field(default_factory=dict)
    """Ids of new members that have not joined yet, as an ordered set."""
    pending_syncs: dict[str, None] = field(default_factory=dict)
    """Members of this generation that have not sent SyncGroup, as an ordered set."""
    assigned_generation: int = 0
    """The latest generation for which the leader has sent an assignment."""
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False
    """Whether a member has joined since the initial rebalance delay was last extended."""
    initial_delay_ms: Millis | None = None
    """The current delay of the initial rebalance; None if there is no initial rebalance."""
    needs_rebalance: bool = False
    """Whether the group was loaded from a record without a leader: it has left the consumer
    protocol, and its members have not been assigned the partitions of those that left."""
    initial_remaining_ms: Millis = 0
    """How much longer the initial rebalance may be delayed."""

    def copy(self) -> Self:
        """A copy that can be changed; the members are immutable and shared."""
        other = copy(self)
        other.members = dict(self.members)
        other.static_members = dict(self.static_members)
        other.pending_joins = dict(self.pending_joins)
        other.pending_syncs = dict(self.pending_syncs)
        return other

    # -- The state of the group --------------------------------------------------------------------

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        return self.state in _PREVIOUS[GroupState.PREPARING_REBALANCE]

    @property
    def is_initial_rebalance(self) -> bool:
        return (
            self.state is GroupState.PREPARING_REBALANCE and self.previous_state is GroupState.EMPTY
        )

    @property
    def is_unused(self) -> bool:
        """Whether the group has never had a member and has no pending join."""
        return (
            self.state is GroupState.EMPTY and self.protocol_type is None and not self.pending_joins
        )

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def transition_to(self, state: GroupState, now: Millis) -> None:
        assert self.state in _PREVIOUS[state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp = now

    # -- Members and the leader --------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a joined or pending member; if it was the leader, the next member takes over."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def change(self, member_id: str, **fields: Any) -> ClassicMember:
        """Give a member new values."""
        member = self.members[member_id] = replace(self.members[member_id], **fields)
        return member

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member a new id but the same position, and drop its parked requests."""
        old = self.members[old_id]
        assert old.group_instance_id is not None
        new = replace(old, member_id=new_id, is_new=False, join=None, sync=None)
        self.members = {
            member.member_id: member
            for member in (new if known is old else known for known in self.members.values())
        }
        self.static_members[old.group_instance_id] = new.member_id
        if old.member_id in self.pending_syncs:
            del self.pending_syncs[old.member_id]
            self.pending_syncs[new.member_id] = None
        if self.leader_id == old.member_id:
            self.leader_id = new.member_id
        return new

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check that these ids identify one member of the group."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                return ErrorCode.unknown_member_id
            if known != member_id:
                return ErrorCode.fenced_instance_id
        if member_id not in self.members:
            return ErrorCode.unknown_member_id
        return ErrorCode.none

    @property
    def awaiting_join(self) -> int:
        return sum(member.join is not None for member in self.members.values())

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_joins and self.awaiting_join == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> Millis:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else elect a member that has rejoined.

        Returns False if no member has rejoined.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader_id = member.member_id
                return True
        return False

    # -- Choosing a protocol -----------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a joiner has the group's protocol type and shares a protocol with all members."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        common = self._common_protocols()
        return any(common is None or protocol.name in common for protocol in protocols)

    def select_protocol(self) -> str:
        """The protocol with the most votes among those that every member supports."""
        candidates = self._common_protocols()
        assert candidates
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _common_protocols(self) -> frozenset[str] | None:
        """The protocols that every member supports; None if the group has no members."""
        common: frozenset[str] | None = None
        for member in self.members.values():
            names = frozenset(protocol.name for protocol in member.protocols)
            common = names if common is None else common & names
        return common

    # -- Generations and subscriptions -------------------------------------------------------------

    def next_generation(self, now: Millis) -> None:
        """End the join phase: start a new generation, or become empty if there are no members."""
        self.generation += 1
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(GroupState.COMPLETING_REBALANCE, now)
        else:
            self.protocol_name = None
            self.transition_to(GroupState.EMPTY, now)
        self.subscribed_topics = self.find_subscribed_topics()
        self.pending_syncs.clear()

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic.

        If the subscriptions of a consumer group are unknown, the group counts as subscribed to
        every topic.
        """
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members of a consumer group subscribe to; None if they are unknown."""
        if not self.uses_consumer_protocol:
            return None
        found: set[str] = set()
        for member in self.members.values():
            if self.protocol_name is None:
                return None
            topics = subscribed_topics(member.metadata_for(self.protocol_name))
            if topics is None:
                return None
            found |= topics
        return frozenset(found)

    # -- The group as the parts that all kinds share see it ----------------------------------------

    @property
    def type_name(self) -> str:
        return CLASSIC

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int | None
    ) -> ErrorCode:
        if epoch < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.none
        error = self.validate_member(member_id, instance_id)
        if error is not ErrorCode.none:
            return error
        if epoch != self.generation:
            return ErrorCode.illegal_generation
        if self.state is GroupState.COMPLETING_REBALANCE:
            # The member knows the new generation but not its assignment, so it must not commit yet.
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def check_committed_partition(
        self, member_id: str, epoch: int, topic_id: TopicId, partition: int
    ) -> ErrorCode:
        return ErrorCode.none

    def commit_changes(self, member_id: str, at: Instant) -> tuple[Any, ...]:
        """A commit proves that its member is alive, so it renews the member's session."""
        if not self.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            return ()
        timeout_ms = self.members[member_id].session_timeout_ms
        return (SetTimer(SessionTimeout(self.group_id, member_id), at.now + timeout_ms),)

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Members of a classic group send no epoch, and anybody may read its offsets."""
        return ErrorCode.none

    def check_offset_delete(self) -> ErrorCode:
        if self.state is not GroupState.EMPTY and not self.uses_consumer_protocol:
            return ErrorCode.non_empty_group
        return ErrorCode.none

    def check_delete(self) -> ErrorCode:
        empty = self.state is GroupState.EMPTY
        return ErrorCode.none if empty else ErrorCode.non_empty_group

    @property
    def is_removable(self) -> bool:
        return self.state is GroupState.EMPTY

    def unused_since(self, commit_timestamp: Millis) -> Millis | None:
        if self.protocol_type is None:
            return commit_timestamp
        if self.state is GroupState.EMPTY:
            empty_since = self.state_timestamp
            return commit_timestamp if empty_since is None else empty_since
        if self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return commit_timestamp
        return None

    def tombstones(self) -> list[GroupRecord]:
        return [(GroupMetadataKey(self.group_id), None)]


def simple_group(group_id: str) -> ClassicGroup:
    """The group of consumers that commit offsets without being members."""
    return ClassicGroup(group_id, GroupState.EMPTY, None)


def group_record(group: ClassicGroup) -> GroupRecord:
    """The record from which a new coordinator restores the group."""
    timestamp = NO_TIMESTAMP if group.state_timestamp is None else group.state_timestamp
    return GroupMetadataKey(group.group_id), GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=timestamp,
        members=tuple(
            member.to_record(group.protocol_name, member.assignment)
            for member in group.members.values()
        ),
    )
