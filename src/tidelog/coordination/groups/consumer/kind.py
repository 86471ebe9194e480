"""The consumer groups of one shard of `__consumer_offsets`.

Stored state is in the groups, and changes in `replay` only. Besides it the kind keeps deadlines of
members, the epoch at which each group's topics were last compared with the metadata, and regular
expressions that are waiting to be matched. A new coordinator starts without them: every member gets
a full session, and every group compares its topics again.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest

from tidelog.controller.image.image import GROUP_RESOURCE, ClusterImage
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import joining
from tidelog.coordination.groups.classic.group import CLASSIC, ClassicGroup
from tidelog.coordination.groups.consumer import (
    classic_members,
    expressions,
    leaving,
    migration,
)
from tidelog.coordination.groups.consumer.describing import describe, not_described
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.heartbeats import (
    NO_THROTTLE,
    check_heartbeat,
    heartbeat,
    heartbeat_response,
)
from tidelog.coordination.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidelog.coordination.groups.consumer.outcome import (
    REBALANCE,
    SESSION,
    GroupOutcome,
    GroupView,
    MemberTimer,
    MetadataChanged,
    MetadataChecked,
    Refused,
    RegexesResolved,
    ResolveRegexes,
    StartTimer,
    StopTimer,
)
from tidelog.coordination.groups.consumer.reconciling import TargetState
from tidelog.coordination.groups.consumer.records import KEY_SCHEMAS
from tidelog.coordination.groups.consumer.replaying import replay
from tidelog.coordination.groups.consumer.topic_access import TopicAccess
from tidelog.coordination.groups.consumer.topics import ClusterTopics, TopicHashes
from tidelog.coordination.groups.kind import GroupDecision, GroupKind, OfKind
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.runtime.decision import CoordinatorRequest, Instant, RecordOrigin
from tidelog.coordination.timers import KeyedTimers
from tidelog.log.checkpoints.checkpoints import encode_id
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.security.authorizer import AclSubject

_AT_ONCE: Millis = 0


class ConsumerGroups(GroupKind):
    type_name = "consumer"
    messages = frozenset(
        {
            ConsumerGroupHeartbeatRequest,
            ConsumerGroupDescribeRequest,
            # These come from members with the classic protocol, while a group migrates.
            JoinGroupRequest,
            SyncGroupRequest,
            HeartbeatRequest,
            LeaveGroupRequest,
        }
    )
    keys = tuple(entity for entity, _ in KEY_SCHEMAS.values())

    def __init__(self, shard: GroupShardState) -> None:
        self._shard = shard
        self._directory = shard.groups
        self._settings = shard.settings.consumer
        self._timers: KeyedTimers[MemberTimer] = KeyedTimers()
        self._checked: dict[str, int] = {}
        self._unresolved: dict[str, ResolveRegexes] = {}
        self._hashes = TopicHashes()
        self._topics = ClusterTopics(ClusterImage())
        self._access = TopicAccess(shard.authorizer)

    # -- Decisions ---------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        message = request.message
        if isinstance(message, ConsumerGroupDescribeRequest):
            return GroupDecision(response=self._describe(message, at))
        try:
            return self._decide(request, at)
        except Refused as refused:
            return GroupDecision(response=_refusal(message, refused), at_once=True)

    def _decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        message = request.message
        client = request.client
        view = self.view(message.group_id, at, AclSubject(client.principal, client.host))
        if isinstance(message, ConsumerGroupHeartbeatRequest):
            check_heartbeat(message, request.version, view.settings)
            if message.member_epoch < JOINING_EPOCH:
                return self._leave(message, view, at)
            return self._heartbeat(request, view)
        group = self.group(message.group_id)
        match message:
            case JoinGroupRequest():
                return self._join_classic(group, request, view, at)
            case SyncGroupRequest():
                return decided(classic_members.sync(group, message, view))
            case HeartbeatRequest():
                return decided(classic_members.heartbeat(group, message, view))
            case LeaveGroupRequest():
                members, results = classic_members.leaving_members(group, message)
                response = replies.left(tuple(results))
                return self._remove(group, members, view, at)._replace(response=response)
        raise AssertionError(f"not a request to a consumer group: {type(message)}")

    def _heartbeat(self, request: CoordinatorRequest, view: GroupView) -> GroupDecision:
        message, client = request.message, request.client
        upgrade = self._group_to_join(message, view)
        host = f"/{client.host}"
        outcome = heartbeat(upgrade.group, message, client.client_id or "", host, view)
        decision = decided(outcome)
        return decision._replace(
            records=(*upgrade.records, *decision.records),
            answers=upgrade.answers,
            changes=(*upgrade.changes, *decision.changes),
        )

    def _group_to_join(
        self, message: ConsumerGroupHeartbeatRequest, view: GroupView
    ) -> migration.Upgrade:
        group = self._directory.get(message.group_id)
        if message.member_epoch == JOINING_EPOCH:
            if group is None:
                return migration.Upgrade(ConsumerGroup(message.group_id))
            if isinstance(group, ClassicGroup):
                return migration.upgrade(group, view)
        return migration.Upgrade(self.group(message.group_id))

    def _leave(
        self, message: ConsumerGroupHeartbeatRequest, view: GroupView, at: Instant
    ) -> GroupDecision:
        group = self.group(message.group_id)
        member = leaving.leaving_member(group, message)
        if message.instance_id is not None and message.member_epoch == LEAVING_STATIC_EPOCH:
            return decided(leaving.leave_for_a_while(group, member))
        response = heartbeat_response(member_id=message.member_id, epoch=message.member_epoch)
        return self._remove(group, (member,), view, at)._replace(response=response)

    def _remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        view: GroupView,
        at: Instant,
    ) -> GroupDecision:
        """Remove members; the group becomes classic if only classic members stay."""
        if members and migration.must_downgrade(group, members, view):
            return migration.downgrade(group, members, self._shard.settings, view, at)
        return decided(leaving.remove_members(group, members, view))

    def _join_classic(
        self, group: ConsumerGroup, request: CoordinatorRequest, view: GroupView, at: Instant
    ) -> GroupDecision:
        if group.is_empty:
            return self._become_classic(group, request, at)
        message, client = request.message, request.client
        identity = (client.client_id or "", f"/{client.host}")
        update, outcome = classic_members.join(group, message, request.version, identity, view)
        if outcome is not None:
            return decided(outcome)
        owned = classic_members.owned_partitions(message, view.topics)
        former = group.static_member(message.group_instance_id)
        if former is not None and migration.must_downgrade(group, (former,), view, update.updated):
            must_rebalance = group.target_epoch < update.epoch
            if not must_rebalance:
                target = TargetState(group.target_epoch, group.target_of(update.updated))
                update.reconcile(target, owned)
            decision = migration.downgrade(
                group,
                (former,),
                self._shard.settings,
                view,
                at,
                update.updated,
                must_rebalance=must_rebalance,
            )
            records = (*update.records, *decision.records)
            response = classic_members.joined(update.updated)
            return decision._replace(records=records, response=response)
        update.reconcile(update.retarget(), owned)
        timers = classic_members.join_timers(group.group_id, update.updated, view)
        return GroupDecision(
            tuple(update.records),
            classic_members.joined(update.updated),
            changes=(*update.changes, *timers),
        )

    def _become_classic(
        self, group: ConsumerGroup, request: CoordinatorRequest, at: Instant
    ) -> GroupDecision:
        """Let a classic member join an empty consumer group, which becomes a classic group."""
        decision = joining.join(self._shard, None, request, at)
        if not decision.records:
            return decision
        return decision._replace(
            records=(*group.tombstones(), *decision.records),
            changes=tuple(OfKind(CLASSIC, change) for change in decision.changes),
            then=None if decision.then is None else OfKind(CLASSIC, decision.then),
        )

    def _describe(
        self, message: ConsumerGroupDescribeRequest, at: Instant
    ) -> ConsumerGroupDescribeResponse:
        described = []
        for group_id in message.group_ids:
            try:
                group = self.group(group_id)
            except Refused as refused:
                described.append(not_described(group_id, refused.error, refused.message))
            else:
                described.append(
                    describe(group, self._settings.assignors[0], self._topics_of(at.image))
                )
        return ConsumerGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=tuple(described))

    def group(self, group_id: str) -> ConsumerGroup:
        """The group with this id; raises Refused if there is none."""
        group = self._directory.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        reason = f"Group {group_id} {'not found' if group is None else 'is not a consumer group'}."
        raise Refused(ErrorCode.group_id_not_found, reason)

    def view(self, group_id: str, at: Instant, subject: AclSubject | None = None) -> GroupView:
        """What decisions about the group read besides the group."""
        return GroupView(
            now=at.now,
            wall=at.wall,
            topics=self._topics_of(at.image),
            hashes=self._hashes,
            settings=self._settings.of_group(at.image.config(GROUP_RESOURCE, group_id)),
            checked_epoch=self._checked.get(group_id),
            subject=subject,
            is_resolving=group_id in self._unresolved,
            new_member_id=lambda: encode_id(self._shard.dice.uuid()),
        )

    def _topics_of(self, image: ClusterImage) -> ClusterTopics:
        if not self._topics.is_of(image):
            self._topics = ClusterTopics(image, self._topics)
        return self._topics

    # -- Changes of state --------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None:
        known = self._directory.get(key.group)
        current = known if isinstance(known, ConsumerGroup) else None
        group = replay(current, key, value)
        if group is not None:
            self._directory[key.group] = group
        elif current is not None:
            del self._directory[key.group]
            self._checked.pop(key.group, None)
            self._unresolved.pop(key.group, None)

    def apply(self, change: Any) -> None:
        match change:
            case StartTimer(timer, deadline, only_if_absent):
                if not (only_if_absent and timer in self._timers):
                    self._timers.schedule(timer, deadline)
            case StopTimer(timer):
                self._timers.cancel(timer)
            case MetadataChecked(group_id, epoch):
                self._checked[group_id] = epoch
            case MetadataChanged():
                self._checked.clear()
            case ResolveRegexes(group_id):
                self._unresolved[group_id] = change
            case RegexesResolved(group_id):
                self._unresolved.pop(group_id, None)
            case _:
                super().apply(change)

    # -- Other inputs ------------------------------------------------------------------------------

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        """Start a full session for each member, because no heartbeats arrived during loading."""
        for group in self._groups():
            changes: list[StartTimer] = []
            timeout = self.view(group.group_id, at).settings.session_timeout_ms
            for member in group.members.values():
                session = MemberTimer(SESSION, group.group_id, member.member_id)
                changes.append(StartTimer(session, at.now + timeout))
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    rebalance = MemberTimer(REBALANCE, group.group_id, member.member_id)
                    changes.append(StartTimer(rebalance, at.now + member.rebalance_timeout_ms))
            yield GroupDecision(changes=tuple(changes))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[GroupDecision]:
        """Compare the topics of every group again when its next heartbeat arrives."""
        if at.image.topics is not old.topics or at.image.brokers is not old.brokers:
            yield GroupDecision(changes=(MetadataChanged(),))

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        for wanted in list(self._unresolved.values()):
            yield self._resolve(wanted, at)
        for timer in self._timers.due(at.now):
            yield self._time_out(timer, at)

    def next_deadline(self) -> Millis | None:
        return _AT_ONCE if self._unresolved else self._timers.next_deadline()

    def _resolve(self, wanted: ResolveRegexes, at: Instant) -> GroupDecision:
        done = RegexesResolved(wanted.group_id)
        group = self._directory.get(wanted.group_id)
        if not isinstance(group, ConsumerGroup):
            return GroupDecision(changes=(done,))
        view = self.view(wanted.group_id, at)
        names = self._access.describable(view.topics.names(), wanted.subject, at.image)
        found = expressions.resolve(wanted.regexes, names, view.topics.version, at.wall)
        outcome = expressions.regexes_resolved(group, found, view)
        return decided(outcome._replace(changes=(*outcome.changes, done)))

    def _time_out(self, timer: MemberTimer, at: Instant) -> GroupDecision:
        group = self._directory.get(timer.group_id)
        member = None
        if isinstance(group, ConsumerGroup):
            member = leaving.timed_out_member(group, timer)
        if member is None:
            return GroupDecision(changes=(StopTimer(timer),))
        assert isinstance(group, ConsumerGroup)
        return self._remove(group, (member,), self.view(timer.group_id, at), at)

    def _groups(self) -> list[ConsumerGroup]:
        return [group for group in self._directory.values() if isinstance(group, ConsumerGroup)]


def decided(outcome: GroupOutcome) -> GroupDecision:
    if outcome.response is None:
        return GroupDecision(outcome.records, changes=outcome.changes)
    return GroupDecision(outcome.records, outcome.response, changes=outcome.changes)


def _refusal(message: Any, refused: Refused) -> Any:
    if isinstance(message, ConsumerGroupHeartbeatRequest):
        return heartbeat_response(error=refused.error, message=refused.message)
    return replies.refusal(message, refused.error, 0)
