"""The share groups of one shard of `__consumer_offsets`.

Stored state is in the groups, and changes in `replay` only. Besides it the kind keeps the sessions
of members, and which initialisations are under way. A new coordinator starts without them: every
member gets a full session, and the next heartbeat asks for the initialisation again.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.share_group_describe.v1 import request as describe_request
from kio.schema.share_group_describe.v1 import response as describe_response
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest

from tidelog.config.group_settings import ShareGroupSettings
from tidelog.controller.image.image import GROUP_RESOURCE, ClusterImage
from tidelog.coordination.groups.kind import GroupDecision, GroupDirectory, GroupKind, GroupRecord
from tidelog.coordination.groups.share import share_group_records as records
from tidelog.coordination.groups.share import share_initialization as initialization
from tidelog.coordination.groups.share import share_offsets as offsets
from tidelog.coordination.groups.share.describing import described, not_described
from tidelog.coordination.groups.share.share_group import ShareAssignment, ShareGroup
from tidelog.coordination.groups.share.share_heartbeats import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    ShareGroupRefused,
    ShareGroupView,
    check_form,
    heartbeat,
    leave,
    leaving_member,
)
from tidelog.coordination.groups.share.share_initialization import (
    InitializationAsked,
    InitializationEnded,
)
from tidelog.coordination.groups.share.share_operations import (
    OperationStep,
    ShareOperation,
    StepEnded,
    ask_delete,
    ask_end,
    ask_initialize,
    ask_summary,
    step_ended,
)
from tidelog.coordination.groups.share.share_responses import heartbeat_response
from tidelog.coordination.runtime.decision import (
    CoordinatorRequest,
    Instant,
    NoAnswer,
    OutgoingRequest,
    RecordOrigin,
    TicketAnswer,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

_NO_TIME = timedelta()


class MemberSession(NamedTuple):
    group_id: str
    member_id: str


class SessionStarted(NamedTuple):
    member: MemberSession
    deadline: Millis


class SessionEnded(NamedTuple):
    member: MemberSession


class OperationEnded(NamedTuple):
    ticket: int


class ShareGroups(GroupKind):
    type_name = "share"
    messages = frozenset(
        {
            ShareGroupHeartbeatRequest,
            describe_request.ShareGroupDescribeRequest,
            offsets.DescribeOffsets,
            offsets.AlterOffsets,
            offsets.DeleteOffsets,
        }
    )
    keys = tuple(entity for entity, _ in records.KEY_SCHEMAS.values())

    def __init__(
        self,
        directory: GroupDirectory,
        settings: ShareGroupSettings,
        hash_of: Callable[[Iterable[str], ClusterImage], int],
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._hash_of = hash_of
        self._sessions: dict[MemberSession, Millis] = {}
        self._asked: dict[str, dict[tuple[Any, int], Millis]] = {}
        """When each initialisation may be asked for again, by group and share partition."""
        self._operations: dict[int, ShareOperation] = {}
        """The operations that wait for other brokers, by ticket."""

    # -- decisions ---------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        message = request.message
        if isinstance(message, describe_request.ShareGroupDescribeRequest):
            return GroupDecision(response=self._describe(message, at.image))
        if not isinstance(message, ShareGroupHeartbeatRequest):
            return self._operate(request, at)
        try:
            check_form(message)
            if message.member_epoch == LEAVING_EPOCH:
                return self._leave(message)
            return self._heartbeat(request, message, at)
        except ShareGroupRefused as refused:
            return GroupDecision(
                response=heartbeat_response(error=refused.error, message=refused.message)
            )

    def _heartbeat(
        self, request: CoordinatorRequest, message: ShareGroupHeartbeatRequest, at: Instant
    ) -> GroupDecision:
        group = self._group_to_join(message)
        view = self._view(group.group_id, at)
        client = request.client
        outcome = heartbeat(group, message, client.client_id or "", f"/{client.host}", view)
        member, settings = outcome.member, view.settings
        session = MemberSession(group.group_id, member.member_id)
        changes: list[Any] = [SessionStarted(session, at.now + settings.session_timeout_ms)]
        written: list[GroupRecord] = list(outcome.records)
        names = group.subscribed_topics() | set(member.topics)
        to_ask = self._to_initialize(group, names, at)
        if to_ask - group.shares.initializing:
            shares = initialization.with_initializing(group, to_ask, at.image)
            written.append(shares.record(group.group_id))
        requests = initialization.initialize_requests(
            group.group_id, outcome.group_epoch, to_ask, at.image
        )
        if requests:
            changes.append(InitializationAsked(group.group_id, to_ask))
        response = heartbeat_response(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            assignment=outcome.assignment,
        )
        return GroupDecision(tuple(written), response, changes=tuple(changes), requests=requests)

    def _to_initialize(
        self, group: ShareGroup, names: Iterable[str], at: Instant
    ) -> ShareAssignment:
        asked = self._asked.get(group.group_id, {})
        missing = initialization.uninitialized(group, names, at.image)
        return frozenset(one for one in missing if asked.get(one, 0) <= at.now)

    def _leave(self, message: ShareGroupHeartbeatRequest) -> GroupDecision:
        group = self._group(message.group_id)
        member = leaving_member(group, message.member_id)
        response = heartbeat_response(member_id=member.member_id, member_epoch=LEAVING_EPOCH)
        ended = SessionEnded(MemberSession(group.group_id, member.member_id))
        return GroupDecision(leave(group, (member.member_id,)), response, changes=(ended,))

    def _describe(
        self, message: describe_request.ShareGroupDescribeRequest, image: ClusterImage
    ) -> describe_response.ShareGroupDescribeResponse:
        groups = []
        for group_id in message.group_ids:
            try:
                groups.append(described(self._group(group_id), image))
            except ShareGroupRefused as refused:
                groups.append(not_described(group_id, refused.error, refused.message))
        return describe_response.ShareGroupDescribeResponse(
            throttle_time=_NO_TIME, groups=tuple(groups)
        )

    def _operate(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        """Begin an operation on offsets, which ends when other brokers have answered."""
        message = request.message
        is_read = isinstance(message, offsets.DescribeOffsets)
        group_id = message.groups[0].group_id if is_read else message.group_id
        try:
            group = self._group(group_id)
        except ShareGroupRefused as refused:
            response = offsets.refused(message, refused.error, refused.message)
            return GroupDecision(response=response)
        if not is_read and group.members:
            reason = "The group is not empty."
            return GroupDecision(
                response=offsets.refused(message, ErrorCode.non_empty_group, reason)
            )
        requests = self._steps(request.ticket, message, group, at.image)
        steps = {one.reply_to for one in requests if isinstance(one.reply_to, OperationStep)}
        operation = ShareOperation(request.ticket, message, group_id, steps)
        if not requests:
            return GroupDecision(response=offsets.response_to(operation, group, at.image))
        return GroupDecision(
            self._intent(message, group, at.image), changes=(operation,), requests=requests
        )

    def _steps(
        self, ticket: int, message: Any, group: ShareGroup, image: ClusterImage
    ) -> tuple[OutgoingRequest, ...]:
        if isinstance(message, offsets.DeleteOffsets):
            names = (topic.topic_name for topic in message.topics)
            shares = [share for name in names for share in offsets.deletable(group, name, image)]
            return tuple(ask_delete(ticket, group.group_id, share, image) for share in shares)
        asked = offsets.asked_shares(message, group, image)
        found = [one.share for one in asked if one.share is not None]
        if isinstance(message, offsets.DescribeOffsets):
            summaries = [ask_summary(ticket, group.group_id, share, image) for share in found]
            return (*summaries, *(ask_end(ticket, share, image) for share in found))
        starts = {
            (topic.topic_name, one.partition_index): one.start_offset
            for topic in message.topics
            for one in topic.partitions
        }
        return tuple(
            ask_initialize(
                ticket,
                group.group_id,
                one.share,
                image,
                group.epoch,
                starts[one.topic, one.partition],
            )
            for one in asked
            if one.share is not None
        )

    def _intent(
        self, message: Any, group: ShareGroup, image: ClusterImage
    ) -> tuple[GroupRecord, ...]:
        """The record that an operation writes before it changes the share coordinator.

        Share partitions with state stay initialised, whatever becomes of the operation. If it
        fails half-way, the next heartbeat must not initialise them again, without their offsets.
        """
        if not isinstance(message, offsets.AlterOffsets):
            return ()
        asked = offsets.asked_shares(message, group, image)
        shares = frozenset(one.share for one in asked if one.share is not None)
        shares -= group.shares.initialized
        if not shares:
            return ()
        changed = initialization.with_initializing(group, shares, image)
        return (changed.record(group.group_id),)

    def _complete(self, operation: ShareOperation, at: Instant) -> GroupDecision:
        group = self._directory.get(operation.group_id)
        ended = OperationEnded(operation.ticket)
        if not isinstance(group, ShareGroup):
            refused = offsets.refused(operation.message, ErrorCode.group_id_not_found)
            answer = TicketAnswer(operation.ticket, refused)
            return GroupDecision(answers=(answer,), changes=(ended,))
        response = offsets.response_to(operation, group, at.image)
        done = frozenset(
            share for share in operation.results if operation.error_of(share) is ErrorCode.none
        )
        written: tuple[GroupRecord, ...] = ()
        if done and isinstance(operation.message, offsets.AlterOffsets):
            written = (initialization.with_initialized(group, done).record(group.group_id),)
        elif done and isinstance(operation.message, offsets.DeleteOffsets):
            written = (initialization.without(group, done).record(group.group_id),)
        answer = TicketAnswer(operation.ticket, response)
        return GroupDecision(written, answers=(answer,), changes=(ended,))

    def _group(self, group_id: str) -> ShareGroup:
        group = self._directory.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        reason = f"Group {group_id} {'not found' if group is None else 'is not a share group'}."
        raise ShareGroupRefused(ErrorCode.group_id_not_found, reason)

    def _group_to_join(self, message: ShareGroupHeartbeatRequest) -> ShareGroup:
        if message.member_epoch == JOINING_EPOCH and message.group_id not in self._directory:
            return ShareGroup(message.group_id)
        return self._group(message.group_id)

    def _view(self, group_id: str, at: Instant) -> ShareGroupView:
        settings = self._settings.of_group(at.image.config(GROUP_RESOURCE, group_id))
        return ShareGroupView(at.wall, at.image, settings, self._hash_of)

    # -- changes of state --------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None:
        known = self._directory.get(key.group)
        group = known if isinstance(known, ShareGroup) else None
        if isinstance(key, records.ShareGroupMetadataKey) and value is None:
            if group is not None:
                del self._directory[key.group]
            self._asked.pop(key.group, None)
            return
        if group is None:
            if value is None:
                return
            group = ShareGroup(key.group)
            self._directory[key.group] = group
        group.replay(key, value)

    def apply(self, change: Any) -> None:
        match change:
            case SessionStarted(member, deadline):
                self._sessions[member] = deadline
            case SessionEnded(member):
                self._sessions.pop(member, None)
            case ShareOperation():
                self._operations[change.ticket] = change
            case StepEnded(step):
                self._operations[step.ticket].take(change)
            case OperationEnded(ticket):
                del self._operations[ticket]
            case InitializationAsked(group_id, partitions):
                asked = self._asked.setdefault(group_id, {})
                asked.update(dict.fromkeys(partitions, _UNTIL_ANSWERED))
            case InitializationEnded(group_id, partitions):
                asked = self._asked.get(group_id, {})
                for partition in partitions:
                    asked.pop(partition, None)
            case _:
                super().apply(change)

    # -- other inputs ------------------------------------------------------------------------------

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        for group in self._groups():
            timeout = self._view(group.group_id, at).settings.session_timeout_ms
            yield GroupDecision(
                changes=tuple(
                    SessionStarted(MemberSession(group.group_id, member), at.now + timeout)
                    for member in group.members
                )
            )

    def answered(
        self, reply_to: Hashable, answer: Any | NoAnswer, at: Instant
    ) -> Iterator[GroupDecision]:
        if isinstance(reply_to, OperationStep):
            yield GroupDecision(changes=(step_ended(reply_to, answer),))
            operation = self._operations[reply_to.ticket]
            if not operation.waits_for:
                yield self._complete(operation, at)
            return
        assert isinstance(reply_to, InitializationAsked)
        ended = InitializationEnded(*reply_to)
        group = self._directory.get(reply_to.group_id)
        if isinstance(answer, NoAnswer) or not isinstance(group, ShareGroup):
            yield GroupDecision(changes=(ended,))
            return
        done = initialization.succeeded(answer) & group.shares.initializing
        written: tuple[GroupRecord, ...] = ()
        if done:
            shares = initialization.with_initialized(group, done)
            written = (shares.record(group.group_id),)
        yield GroupDecision(written, changes=(ended,))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[GroupDecision]:
        if at.image.topic_names is old.topic_names:
            return
        for group in self._groups():
            shares = initialization.without_topics(group, at.image)
            if shares is not None:
                yield GroupDecision((shares.record(group.group_id),))

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        due = [timer for timer, deadline in self._sessions.items() if deadline <= at.now]
        for timer in due:
            group = self._directory.get(timer.group_id)
            written: tuple[GroupRecord, ...] = ()
            if isinstance(group, ShareGroup) and timer.member_id in group.members:
                written = leave(group, (timer.member_id,))
            yield GroupDecision(written, changes=(SessionEnded(timer),))

    def next_deadline(self) -> Millis | None:
        return min(self._sessions.values(), default=None)

    def _groups(self) -> list[ShareGroup]:
        return [group for group in self._directory.values() if isinstance(group, ShareGroup)]


_UNTIL_ANSWERED: Millis = 1 << 62
