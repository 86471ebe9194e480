"""Members of a consumer group that use the classic protocol, while a group migrates (KIP-848).

Such a member sends JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The coordinator computes its
assignment like that of all others, and translates: the member epoch is its generation, a heartbeat
is answered with REBALANCE_IN_PROGRESS when the member must report or receive partitions, and every
join is answered as to a follower. The member reports what it owns in its subscription.
"""

from dataclasses import replace
from datetime import timedelta

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import MemberResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse

from tidelog.config.group_settings import MigrationPolicy
from tidelog.coordination.groups.consumer.embedded_protocol import (
    EmbeddedProtocolError,
    EmbeddedSubscription,
    read_subscription,
    write_assignment,
)
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import (
    ConsumerMember,
    MemberState,
    without_epochs,
)
from tidelog.coordination.groups.consumer.membership import (
    check_instance,
    check_size,
    join_static,
    known_member,
    known_static_member,
)
from tidelog.coordination.groups.consumer.outcome import (
    JOIN,
    SESSION,
    SYNC,
    GroupChange,
    GroupOutcome,
    GroupView,
    MemberTimer,
    Refused,
    StartTimer,
    StopTimer,
)
from tidelog.coordination.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupRecord,
)
from tidelog.coordination.groups.consumer.topics import ClusterTopics
from tidelog.coordination.groups.consumer.updating import MemberUpdate
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

PROTOCOL_TYPE = "consumer"
NO_THROTTLE = timedelta(0)
_UNKNOWN = ""
_FIRST_WITH_KNOWN_ID = 4
"""The first version of JoinGroup in which a new member must know its id (KIP-394)."""


def join(
    group: ConsumerGroup,
    request: JoinGroupRequest,
    version: int,
    client: tuple[str, str],
    view: GroupView,
) -> tuple[MemberUpdate, GroupOutcome | None]:
    """Take a member through its join, up to its subscription.

    Returns an outcome instead if the member must come back with the id that it is given.
    """
    _check_join(group, request, view)
    is_new = request.member_id == _UNKNOWN
    member_id = view.new_member_id() if is_new else request.member_id
    check_size(group, member_id, view.settings.max_size)
    subscription = _subscription(request)
    instance_id = request.group_instance_id
    records: list[ConsumerGroupRecord] = []
    if instance_id is None:
        member = group.members.get(member_id) or ConsumerMember(member_id=member_id)
    elif is_new:
        records, member = join_static(group, member_id, instance_id, classic=True)
    else:
        member = known_static_member(group, member_id, instance_id)
    updated = _updated(member, request, subscription, client)
    update = MemberUpdate(group, member, updated, view, records)
    if is_new and instance_id is None and version >= _FIRST_WITH_KNOWN_ID:
        return update, GroupOutcome(response=not_joined(ErrorCode.member_id_required, member_id))
    update.subscribe()
    return update, None


def _check_join(group: ConsumerGroup, request: JoinGroupRequest, view: GroupView) -> None:
    if view.settings.migration is MigrationPolicy.DISABLED:
        raise Refused(ErrorCode.inconsistent_group_protocol)
    names = [protocol.name for protocol in request.protocols]
    is_common = any(group.classic_protocols[name] == group.classic_members for name in names)
    if request.protocol_type != PROTOCOL_TYPE or not is_common:
        raise Refused(ErrorCode.inconsistent_group_protocol)


def _subscription(request: JoinGroupRequest) -> EmbeddedSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except EmbeddedProtocolError as error:
        raise Refused(ErrorCode.inconsistent_group_protocol, str(error)) from error


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    subscription: EmbeddedSubscription,
    client: tuple[str, str],
) -> ConsumerMember:
    milliseconds = timedelta(milliseconds=1)
    rebalance_ms = request.rebalance_timeout // milliseconds
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if rebalance_ms == -1 else rebalance_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=client[0],
        client_host=client[1],
        classic=ClassicMemberMetadata(
            request.session_timeout // milliseconds,
            tuple(ClassicProtocol(one.name, one.metadata) for one in request.protocols),
        ),
    )


def owned_partitions(
    request: JoinGroupRequest, topics: ClusterTopics
) -> dict[TopicId, tuple[int, ...]]:
    """The partitions that the member reports to own; it always reports them."""
    owned: dict[TopicId, tuple[int, ...]] = {}
    for name, partitions in _subscription(request).owned:
        facts = topics.named(name)
        if facts is not None:
            owned[facts.topic_id] = partitions
    return owned


def joined(member: ConsumerMember) -> JoinGroupResponse:
    """The response to a member that has joined: it is a follower, whatever its role was."""
    assert member.classic is not None
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        leader="",
        member_id=member.member_id,
        members=(),
    )


def not_joined(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=(),
    )


def join_timers(group_id: str, member: ConsumerMember, view: GroupView) -> tuple[GroupChange, ...]:
    """The member must fetch its assignment within its rebalance timeout."""
    assert member.classic is not None
    sync = MemberTimer(SYNC, group_id, member.member_id)
    return (
        StopTimer(MemberTimer(JOIN, group_id, member.member_id)),
        _session(group_id, member, view),
        StartTimer(sync, view.now + member.rebalance_timeout_ms),
    )


def _session(group_id: str, member: ConsumerMember, view: GroupView) -> StartTimer:
    assert member.classic is not None
    timer = MemberTimer(SESSION, group_id, member.member_id)
    return StartTimer(timer, view.now + member.classic.session_timeout_ms)


def sync(group: ConsumerGroup, request: SyncGroupRequest, view: GroupView) -> GroupOutcome:
    """Send a member its assignment."""
    member = _checked(group, request)
    assert member.classic is not None
    protocol = member.classic.supported_protocols[0].name
    if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        protocol,
    ):
        raise Refused(ErrorCode.inconsistent_group_protocol)
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        response = not_synced(ErrorCode.rebalance_in_progress)
        return GroupOutcome((), response, (_must_join(group.group_id, member, view),))
    response = SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_of(member, view.topics),
    )
    stop = StopTimer(MemberTimer(SYNC, group.group_id, member.member_id))
    return GroupOutcome((), response, (stop, _session(group.group_id, member, view)))


def not_synced(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(throttle_time=NO_THROTTLE, error_code=error, assignment=b"")


def assignment_of(member: ConsumerMember, topics: ClusterTopics) -> bytes:
    """The member's assignment in the embedded consumer protocol."""
    assert member.classic is not None
    version = read_subscription(member.classic.supported_protocols[0].metadata).version
    named = ((topics.name_of(id_), ids) for id_, ids in without_epochs(member.assigned).items())
    return write_assignment(((name, ids) for name, ids in named if name is not None), version)


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, view: GroupView) -> GroupOutcome:
    """Renew a member's session; tell it to join again if it has something to report or receive."""
    member = _checked(group, request)
    session = _session(group.group_id, member, view)
    must_join = (
        member.epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (
            member.state is MemberState.UNRELEASED_PARTITIONS
            and not group.waits_for_partitions(member)
        )
    )
    if not must_join:
        return GroupOutcome((), _beat(ErrorCode.none), (session,))
    response = _beat(ErrorCode.rebalance_in_progress)
    return GroupOutcome((), response, (session, _must_join(group.group_id, member, view)))


def _beat(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=error)


def _must_join(group_id: str, member: ConsumerMember, view: GroupView) -> StartTimer:
    timer = MemberTimer(JOIN, group_id, member.member_id)
    return StartTimer(timer, view.now + member.rebalance_timeout_ms, only_if_absent=True)


def _checked(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember:
    """The member of a request, which must use the classic protocol in its current generation."""
    if request.group_instance_id is None:
        member = known_member(group, request.member_id)
    else:
        member = known_static_member(group, request.member_id, request.group_instance_id)
    if not member.uses_classic_protocol:
        raise Refused(ErrorCode.unknown_member_id)
    if request.generation_id != member.epoch:
        raise Refused(ErrorCode.illegal_generation)
    return member


def leaving_members(
    group: ConsumerGroup, request: LeaveGroupRequest
) -> tuple[list[ConsumerMember], list[MemberResponse]]:
    """The members that leave, and the result for each that was named."""
    leaving: dict[str, ConsumerMember] = {}
    results = []
    for identity in request.members:
        error = ErrorCode.none
        try:
            member = _identified(group, identity)
            leaving[member.member_id] = member
        except Refused as refused:
            error = refused.error
        results.append(
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
        )
    return list(leaving.values()), results


def _identified(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return known_member(group, identity.member_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise Refused(ErrorCode.unknown_member_id)
    if identity.member_id:
        check_instance(member, identity.member_id, identity.group_instance_id)
    return member
