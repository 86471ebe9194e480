"""ShareFetch (key 78) and ShareAcknowledge (key 79), versions 1-2.

A member fetches and acknowledges in a share session of the broker that leads the partitions. A
ShareFetch first applies its acknowledgements, and then acquires records. It waits up to max_wait if
there are none. The epoch 0 opens a session, and -1 closes it and releases what the member still
holds. Version 2 adds the strict limit of records (KIP-1206) and the renewal of locks (KIP-1222).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kio.schema.share_acknowledge.v2 import response as ack_response
from kio.schema.share_fetch.v2 import response as fetch_response

from tidelog.api.handler import Handling, Request
from tidelog.api.records.leaders import current_leader, endpoints_of
from tidelog.api.records.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareMemberKey,
    ShareRef,
    ShareSession,
)
from tidelog.api.shares.share_groups import is_enabled
from tidelog.controller.image.image import GROUP_RESOURCE
from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch, form_error
from tidelog.coordination.delivery.group_limits import delivery_limits
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_NODE, TopicPartition
from tidelog.model.share_effects import (
    AcknowledgeRecords,
    AcquireRecords,
    PartitionAcknowledgement,
    RecordsAcknowledged,
    RecordsAcquired,
    ReleaseRecords,
    SharedPartition,
)
from tidelog.protocol.pieces import CurrentLeader

_STRICT = 1
_MOST_BYTES = 32 << 20
"""The maximum size of the records of a response, which is built in memory."""
MOST_PARTITIONS = 10_000
"""The maximum number of partitions of a session. Partitions of topics that do not exist stay in a
session, because the topic may only be unknown to this broker yet."""
_NO_RECORDS = RecordsAcquired(ErrorCode.none)
_DONE = RecordsAcknowledged(ErrorCode.none)


@dataclass(slots=True)
class _Outcome:
    """What the response says about each partition."""

    acknowledged: dict[ShareRef, RecordsAcknowledged] = field(default_factory=dict)
    acquired: dict[ShareRef, RecordsAcquired] = field(default_factory=dict)


def fetch(request: Request) -> Handling:
    """Acknowledges records of share groups, and acquires more of them."""
    message = request.message
    session = _session(request)
    if isinstance(session, ErrorCode):
        return _fetch_response(request, _Outcome(), session)
    for topic in message.topics:
        for one in topic.partitions:
            session.partitions[(topic.topic_id, one.partition_index)] = None
    for topic in message.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id, index), None)
    if len(session.partitions) > MOST_PARTITIONS:
        yield from _close(request, session)
        return _fetch_response(request, _Outcome(), ErrorCode.invalid_request)
    outcome = _Outcome()
    yield from _acknowledge(request, outcome)
    if message.share_session_epoch == FINAL_EPOCH:
        yield from _close(request, session)
    elif not message.is_renew_ack and not session.is_ended:
        yield from _acquire(request, session, outcome)
    return _fetch_response(request, outcome)


def acknowledge(request: Request) -> Handling:
    """Acknowledges records of share groups."""
    message = request.message
    session: ShareSession | ErrorCode = ErrorCode.invalid_share_session_epoch
    if not is_enabled(request):
        session = ErrorCode.unsupported_version
    elif not message.group_id or not message.member_id:
        session = ErrorCode.invalid_request
    elif message.share_session_epoch != INITIAL_EPOCH:
        session = request.share_sessions.use(_key(message), message.share_session_epoch)
    if isinstance(session, ErrorCode):
        return _acknowledge_response(request, _Outcome(), session)
    outcome = _Outcome()
    yield from _acknowledge(request, outcome)
    if message.share_session_epoch == FINAL_EPOCH:
        yield from _close(request, session)
    return _acknowledge_response(request, outcome)


def _session(request: Request) -> ShareSession | ErrorCode:
    message = request.message
    if not is_enabled(request):
        return ErrorCode.unsupported_version
    if not message.group_id or not message.member_id:
        return ErrorCode.invalid_request
    if message.share_session_epoch == INITIAL_EPOCH:
        if any(one.acknowledgement_batches for topic in message.topics for one in topic.partitions):
            return ErrorCode.invalid_request
        return request.share_sessions.open(_key(message), request.conn)
    asks_for_records = message.max_wait or message.min_bytes or message.max_records
    if message.is_renew_ack and asks_for_records:
        return ErrorCode.invalid_request
    return request.share_sessions.use(_key(message), message.share_session_epoch)


def _key(message: Any) -> ShareMemberKey:
    return ShareMemberKey(message.group_id, message.member_id)


def _shared(request: Request, ref: ShareRef) -> SharedPartition | None:
    name = request.image.topic_names.get(ref[0])
    return None if name is None else SharedPartition(ref[0], TopicPartition(name, ref[1]))


def _acknowledge(request: Request, outcome: _Outcome) -> Handling:
    message = request.message
    valid: dict[ShareRef, PartitionAcknowledgement] = {}
    for topic in message.topics:
        for one in topic.partitions:
            if not one.acknowledgement_batches:
                continue
            ref = (topic.topic_id, one.partition_index)
            batches = [
                AcknowledgementBatch(b.first_offset, b.last_offset, b.acknowledge_types)
                for b in one.acknowledgement_batches
            ]
            partition = _shared(request, ref)
            error = form_error(batches, may_renew=message.is_renew_ack)
            if error is not None:
                outcome.acknowledged[ref] = RecordsAcknowledged(ErrorCode.invalid_request, error)
            elif partition is None:
                outcome.acknowledged[ref] = RecordsAcknowledged(ErrorCode.unknown_topic_id)
            else:
                typed = tuple((b.first, b.last, tuple(b.types)) for b in batches)
                valid[ref] = PartitionAcknowledgement(partition, typed)
    if valid:
        effect = AcknowledgeRecords(message.group_id, message.member_id, list(valid.values()))
        results = yield effect
        outcome.acknowledged.update(zip(valid, results, strict=True))


def _acquire(request: Request, session: ShareSession, outcome: _Outcome) -> Handling:
    message = request.message
    refs = list(session.partitions)
    turn = session.epoch % len(refs) if refs else 0
    known: dict[ShareRef, SharedPartition] = {}
    for ref in refs[turn:] + refs[:turn]:  # each fetch begins with another partition
        partition = _shared(request, ref)
        if partition is None:
            outcome.acquired[ref] = RecordsAcquired(ErrorCode.unknown_topic_id)
        else:
            known[ref] = partition
    has_news = bool(outcome.acquired or outcome.acknowledged)
    effect = AcquireRecords(
        message.group_id,
        message.member_id,
        list(known.values()),
        message.max_records,
        max(1, message.batch_size),
        message.share_acquire_mode == _STRICT,
        min(message.max_bytes, request.settings.fetch_max_bytes, _MOST_BYTES),
        0 if has_news or not known else message.max_wait // timedelta(milliseconds=1),
    )
    results = yield effect
    outcome.acquired.update(zip(known, results, strict=True))


def _close(request: Request, session: ShareSession) -> Handling:
    request.share_sessions.close(session.key)
    found = (_shared(request, ref) for ref in session.partitions)
    partitions = [partition for partition in found if partition is not None]
    group, member = session.key
    yield ReleaseRecords(group, member, partitions, session.is_last)


# -- responses -------------------------------------------------------------------------------------


def _lock_timeout(request: Request) -> timedelta:
    own = request.image.config(GROUP_RESOURCE, request.message.group_id or "")
    limits = delivery_limits(request.settings, own)
    return timedelta(milliseconds=limits.record_lock_duration_ms)


def _by_topic(refs: Iterable[ShareRef]) -> Mapping[Any, list[ShareRef]]:
    topics: dict[Any, list[ShareRef]] = {}
    for ref in refs:
        topics.setdefault(ref[0], []).append(ref)
    return topics


def _leader_of(request: Request, ref: ShareRef, error: ErrorCode) -> CurrentLeader:
    partition = _shared(request, ref)
    found = None if partition is None else current_leader(request, error, partition.partition)
    return found or CurrentLeader(NO_NODE, NO_EPOCH)


def _fetch_response(
    request: Request, outcome: _Outcome, error: ErrorCode = ErrorCode.none
) -> fetch_response.ShareFetchResponse:
    shown = dict.fromkeys(outcome.acknowledged)
    for ref, result in outcome.acquired.items():
        if result.error is not ErrorCode.none or result.acquired:
            shown[ref] = None
    leaders: dict[int, None] = {}
    topics = tuple(
        fetch_response.ShareFetchableTopicResponse(
            topic_id=topic_id,
            partitions=tuple(_fetched(request, ref, outcome, leaders) for ref in refs),
        )
        for topic_id, refs in _by_topic(shown).items()
    )
    return fetch_response.ShareFetchResponse(
        throttle_time=timedelta(),
        error_code=error,
        error_message=None,
        acquisition_lock_timeout=_lock_timeout(request),
        responses=topics,
        node_endpoints=tuple(
            fetch_response.NodeEndpoint(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in endpoints_of(request, leaders)
        ),
    )


def _fetched(
    request: Request, ref: ShareRef, outcome: _Outcome, leaders: dict[int, None]
) -> fetch_response.PartitionData:
    fetched = outcome.acquired.get(ref, _NO_RECORDS)
    acknowledged = outcome.acknowledged.get(ref, _DONE)
    error = fetched.error if fetched.error is not ErrorCode.none else acknowledged.error
    leader = _leader_of(request, ref, error)
    if leader.leader_id != NO_NODE:
        leaders[leader.leader_id] = None
    return fetch_response.PartitionData(
        partition_index=ref[1],
        error_code=fetched.error,
        error_message=fetched.message,
        acknowledge_error_code=acknowledged.error.value,
        acknowledge_error_message=acknowledged.message,
        current_leader=fetch_response.LeaderIdAndEpoch(
            leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
        ),
        records=fetched.records or b"",
        acquired_records=tuple(
            fetch_response.AcquiredRecords(
                first_offset=first, last_offset=last, delivery_count=delivered
            )
            for first, last, delivered in fetched.acquired
        ),
    )


def _acknowledge_response(
    request: Request, outcome: _Outcome, error: ErrorCode = ErrorCode.none
) -> ack_response.ShareAcknowledgeResponse:
    leaders: dict[int, None] = {}
    topics = []
    for topic_id, refs in _by_topic(outcome.acknowledged).items():
        rows = []
        for ref in refs:
            result = outcome.acknowledged[ref]
            leader = _leader_of(request, ref, result.error)
            if leader.leader_id != NO_NODE:
                leaders[leader.leader_id] = None
            rows.append(
                ack_response.PartitionData(
                    partition_index=ref[1],
                    error_code=result.error,
                    error_message=result.message,
                    current_leader=ack_response.LeaderIdAndEpoch(
                        leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                    ),
                )
            )
        topics.append(
            ack_response.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(rows))
        )
    return ack_response.ShareAcknowledgeResponse(
        throttle_time=timedelta(),
        error_code=error,
        error_message=None,
        acquisition_lock_timeout=_lock_timeout(request),
        responses=tuple(topics),
        node_endpoints=tuple(
            ack_response.NodeEndpoint(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in endpoints_of(request, leaders)
        ),
    )
