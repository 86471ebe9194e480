"""ConsumerGroupHeartbeat: a member joins, reports what it owns, and receives its assignment.

A heartbeat may bump the group epoch (the subscription or the topics have changed), compute a new
target assignment for it, and move the member one step towards its target. Each step is a record.
"""

from dataclasses import replace
from datetime import timedelta

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

from tidelog.config.group_settings import ConsumerGroupSettings
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    PartitionEpochs,
)
from tidelog.coordination.groups.consumer.membership import find_member
from tidelog.coordination.groups.consumer.outcome import (
    SESSION,
    GroupOutcome,
    GroupView,
    MemberTimer,
    Refused,
    StartTimer,
)
from tidelog.coordination.groups.consumer.reconciling import Owned
from tidelog.coordination.groups.consumer.updating import MemberUpdate
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

NO_THROTTLE = timedelta(0)
_UNCHANGED = timedelta(milliseconds=-1)


def heartbeat_response(
    *,
    error: ErrorCode = ErrorCode.none,
    message: str | None = None,
    member_id: str | None = None,
    epoch: int = 0,
    interval_ms: int = 0,
    assigned: PartitionEpochs | None = None,
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        error_message=message,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval=timedelta(milliseconds=interval_ms),
        assignment=None
        if assigned is None
        else Assignment(
            topic_partitions=tuple(
                TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(epochs)))
                for topic_id, epochs in sorted(assigned.items())
            )
        ),
    )


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: ConsumerGroupSettings
) -> None:
    """Refuse a request that is not valid in itself."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVING_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    problem = None
    if epoch == JOINING_EPOCH:
        problem = _problem_with_joining(request)
    elif epoch == LEAVING_STATIC_EPOCH and request.instance_id is None:
        problem = "InstanceId can't be null."
    elif epoch < LEAVING_STATIC_EPOCH:
        problem = "MemberEpoch is invalid."
    if problem is not None:
        raise Refused(ErrorCode.invalid_request, problem)
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.assignors:
        raise Refused(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {assignor} is not supported. "
            f"Supported assignors: {', '.join(settings.assignors)}.",
        )


def _check_not_blank(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise Refused(ErrorCode.invalid_request, f"{name} can't be empty.")


def _problem_with_joining(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout == _UNCHANGED:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
            "when (re-)joining."
        )
    return None


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[TopicId, list[int]] = {}
    for entry in request.topic_partitions:
        assert entry.topic_id is not None
        owned.setdefault(entry.topic_id, []).extend(entry.partitions)
    return owned


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
    view: GroupView,
) -> GroupOutcome:
    """Decide about a heartbeat of a member that stays in the group."""
    owned = owned_partitions(request)
    member_id = request.member_id or view.new_member_id()
    records, member = find_member(group, request, member_id, owned, view)
    update = MemberUpdate(
        group, member, _updated(member, request, client_id, client_host), view, records
    )
    update.subscribe()
    update.reconcile(update.retarget(), owned)
    updated = update.updated
    session = MemberTimer(SESSION, group.group_id, updated.member_id)
    shows_assignment = (
        request.member_epoch == JOINING_EPOCH
        or _is_full(request)
        or member.assigned != updated.assigned
    )
    response = heartbeat_response(
        member_id=updated.member_id,
        epoch=updated.epoch,
        interval_ms=view.settings.heartbeat_interval_ms,
        assigned=updated.assigned if shows_assignment else None,
    )
    changes = (*update.changes, StartTimer(session, view.now + view.settings.session_timeout_ms))
    return GroupOutcome(tuple(update.records), response, changes)


def _updated(
    member: ConsumerMember,
    request: ConsumerGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
) -> ConsumerMember:
    """The member with the fields that the request contains; null means unchanged."""
    timeout = request.rebalance_timeout
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return replace(
        member,
        instance_id=_or(request.instance_id, member.instance_id),
        rack_id=_or(request.rack_id, member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if timeout == _UNCHANGED
        else timeout // timedelta(milliseconds=1),
        server_assignor=_or(request.server_assignor, member.server_assignor),
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=_or(regex, member.topic_regex),
        client_id=client_id,
        client_host=client_host,
        classic=None,
    )


def _or(given: str | None, kept: str | None) -> str | None:
    return kept if given is None else given


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member has sent everything, so that it needs everything in return."""
    return (
        request.rebalance_timeout != _UNCHANGED
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
