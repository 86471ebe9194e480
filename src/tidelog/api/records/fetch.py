"""Fetch (key 1), versions 4-18.

The response is sent when min_bytes can be read, a partition has an error, or max_wait expires. The
first batch is returned whole even if it exceeds the limits, so that a reader always makes progress
(KIP-74). Sessions are supported from version 7 on (KIP-227), and topics are named by id from
version 13 on (KIP-516). From version 16 on, the response includes the address of a partition's new
leader (KIP-951). On a controller listener the request fetches the metadata log, by the rules of the
quorum (KIP-595). From version 11 on, a consumer is redirected to an in-sync replica in its rack if
replica.selector.class selects one (KIP-392). Any replica serves reads up to its own high watermark.

With an authorizer, a consumer needs Read on each topic, and a follower needs ClusterAction. The
partitions of a session are checked in each fetch (F87).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, cast

from tidelog.api.access.permits import permits
from tidelog.api.handler import Handling, Request
from tidelog.api.records.fetch_sessions import CachedPartition, FetchPlan
from tidelog.api.records.leaders import current_leader, endpoints_of
from tidelog.api.slicing import PAUSE, chunks
from tidelog.model.effects import (
    FetchBatches,
    FetchMetadata,
    FetchResult,
    PartitionFetch,
    Reader,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, NodeId, TopicPartition
from tidelog.protocol.fetch import FetchRequest, FetchResponse, PartitionFetched
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint, TopicRef
from tidelog.security.acls import AclOperation, AclResource

READ_COMMITTED = 1
LONG = 500
"""A request with more topics and partitions than this updates its session in slices."""
MANY = 1_000
"""A fetch of more partitions than this is read in slices."""
_FIRST_WITH_RACKS = 11
_FIRST_WITH_TOPIC_IDS = 13

_UNKNOWN_ID = FetchResult(ErrorCode.unknown_topic_id)
_DENIED = FetchResult(ErrorCode.topic_authorization_failed)
_UNKNOWN = (ErrorCode.unknown_topic_id, ErrorCode.unknown_topic_or_partition)

_Answer: TypeAlias = tuple[CachedPartition, str | None, FetchResult]
"""The requested partition, the name of its topic (None if there is no topic), and the result."""


def handle(request: Request) -> Handling:
    """Reads record batches; waits for `min_bytes`."""
    message: FetchRequest = request.message
    if request.listener in request.settings.controller_listener_names:
        if request.authorizer is not None and not _is_broker(request):
            return FetchResponse(error=ErrorCode.cluster_authorization_failed)
        return (yield FetchMetadata(message))
    uses_ids = request.version >= _FIRST_WITH_TOPIC_IDS
    if message.entries > LONG:
        plan = yield from _plan_long(request, message, uses_ids)
    else:
        plan = request.fetch_sessions.plan(message, uses_ids, request.now)
    if plan.error is not ErrorCode.none:
        return FetchResponse(error=plan.error)
    if message.rack_id and plan.session is not None:
        plan.session.image_seen(request.image.offset)
    asked = plan.asked() if plan.session is None else plan.session.asked()
    if len(asked) > MANY:
        return (yield from _fetch_many(request, plan, asked))
    return (yield from _fetch(request, plan, asked, message.max_bytes, message.max_wait_ms))


def _plan_long(request: Request, message: FetchRequest, uses_ids: bool) -> Handling:
    """Add partitions to a session in slices; forgotten partitions are removed last."""
    flat = [(ref, one) for ref, partitions in message.topics for one in partitions]
    plan: FetchPlan | None = None
    for chunk in chunks(flat, MANY):
        topics = [(ref, [one for _, one in part]) for ref, part in groupby(chunk, itemgetter(0))]
        part = replace(message, topics=topics, forgotten=())
        if plan is None:
            plan = request.fetch_sessions.plan(part, uses_ids, request.now)
        else:
            plan = request.fetch_sessions.extend(plan, part)
        if plan.error is not ErrorCode.none:
            return plan
        yield PAUSE
    if plan is None:
        return request.fetch_sessions.plan(message, uses_ids, request.now)
    return request.fetch_sessions.extend(plan, replace(message, topics=()))


def _fetch_many(request: Request, plan: FetchPlan, asked: list[CachedPartition]) -> Handling:
    """Read the available records in slices of partitions.

    If the fetch has a session, it does not wait for records, because the session's next fetch reads
    only changed partitions and can wait. A fetch without a session may wait while it reads its last
    slice.
    """
    topics: list[tuple[TopicRef, list[PartitionFetched]]] = []
    endpoints: dict[NodeEndpoint, None] = {}
    budget = request.message.max_bytes
    wait_ms = 0 if plan.session is not None else request.message.max_wait_ms
    parts = list(chunks(asked, MANY // 2))
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        response = yield from _fetch(request, plan, part, budget, wait_ms if is_last else 0)
        if not is_last:
            yield PAUSE
        for ref, row in response.topics:
            if any(map(_is_urgent, row)):
                wait_ms = 0
            budget -= sum(one.records.length for one in row if one.records is not None)
            if topics and topics[-1][0] == ref:
                topics[-1][1].extend(row)
            else:
                topics.append((ref, list(row)))
        endpoints.update(dict.fromkeys(response.node_endpoints))
        budget = max(0, budget)
    return FetchResponse(topics, session_id=plan.session_id, node_endpoints=list(endpoints))


def _is_urgent(fetched: PartitionFetched) -> bool:
    return (
        fetched.records is not None
        or fetched.error is not ErrorCode.none
        or fetched.preferred_read_replica != NO_NODE
    )


def _fetch(
    request: Request,
    plan: FetchPlan,
    asked: Sequence[CachedPartition],
    max_bytes: int,
    max_wait_ms: int,
) -> Handling:
    message, topic_names = request.message, request.image.topic_names
    reads: list[PartitionFetch] = []
    nameless: list[CachedPartition] = []
    denied: list[_Answer] = []
    for cached in asked:
        ref = cached.topic
        read = cached.read_as(ref if isinstance(ref, str) else topic_names.get(ref))
        if read is None:
            nameless.append(cached)
        elif request.authorizer is not None and not _may_read(request, read.partition.topic):
            denied.append((cached, read.partition.topic, _DENIED))
        else:
            reads.append(read)
    max_bytes = min(max_bytes, request.settings.fetch_max_bytes)
    effect = FetchBatches(
        reads,
        min_bytes=min(message.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=0 if nameless or denied or plan.is_empty else max_wait_ms,
        read_committed=message.isolation_level == READ_COMMITTED,
        replica=message.replica_id,
        replica_epoch=message.replica_epoch,
        reader=None if message.replica_id >= 0 else _reader(request),
        session=plan.session,
    )
    results = yield effect
    answers: list[_Answer] = []
    has_unknown = bool(nameless)
    for read, result in zip(effect.reads, results, strict=True):
        if result.error is not ErrorCode.none and result.error in _UNKNOWN:
            has_unknown = True
        cached = cast(CachedPartition, read.watch)
        # A session's partition that moved during the wait has not been checked before.
        if request.authorizer is not None and not _may_read(request, read.partition.topic):
            result = _DENIED
            cached.mark()  # the next fetch reports the error again
        answers.append((cached, read.partition.topic, result))
    answers += denied
    answers += [(cached, None, _UNKNOWN_ID) for cached in nameless]
    if has_unknown:
        answers.sort(key=_rank)
    return _response(request, plan, answers)


def _may_read(request: Request, topic: str) -> bool:
    if request.message.replica_id >= 0:
        return _is_broker(request)
    return permits(request, AclOperation.READ, AclResource.TOPIC, topic)


def _is_broker(request: Request) -> bool:
    return permits(request, AclOperation.CLUSTER_ACTION, AclResource.CLUSTER)


def _reader(request: Request) -> Reader | None:
    """The consumer, if it may be redirected to a follower; None for old versions."""
    if request.version < _FIRST_WITH_RACKS:
        return None
    return Reader(request.message.rack_id, request.listener)


def _rank(answer: _Answer) -> int:
    """The order of partitions in Kafka's responses: known topics, unknown ids, unknown names."""
    error = answer[2].error
    return _UNKNOWN.index(error) + 1 if error in _UNKNOWN else 0


def _response(request: Request, plan: FetchPlan, answers: Iterable[_Answer]) -> FetchResponse:
    topics: list[tuple[TopicRef, list[PartitionFetched]]] = []
    leaders: dict[NodeId, None] = {}
    for cached, name, result in answers:
        if plan.session is not None:
            is_news = _remember(plan, cached, result)
            if plan.is_incremental and not is_news:
                continue
        error = result.error
        if error is ErrorCode.none:
            leader, aborted = None, result.aborted
        else:
            # On an error, Kafka sends null instead of a list of aborted transactions, except for an
            # unknown partition.
            aborted = () if error in _UNKNOWN else result.aborted
            leader = _leader(request, name, cached.fetch.partition, error)
            if leader is not None:
                leaders[leader.leader_id] = None
        partition = PartitionFetched(
            cached.fetch.partition,
            error,
            result.high_watermark,
            result.last_stable_offset,
            result.log_start_offset,
            result.records,
            aborted,
            result.preferred_read_replica,
            result.diverging,
            leader,
        )
        if topics and topics[-1][0] == cached.topic:
            topics[-1][1].append(partition)
        else:
            topics.append((cached.topic, [partition]))
    endpoints = endpoints_of(request, leaders) if leaders else ()
    return FetchResponse(topics, session_id=plan.session_id, node_endpoints=endpoints)


def _remember(plan: FetchPlan, cached: CachedPartition, result: FetchResult) -> bool:
    """Store the state for this response; returns whether it differs from the last response."""
    session = plan.session
    assert session is not None
    has_records = result.records is not None
    is_news = (
        has_records
        or result.error is not ErrorCode.none
        or result.high_watermark != cached.high_watermark
        or result.log_start_offset != cached.log_start_offset
        or result.diverging is not None
        or result.preferred_read_replica != NO_NODE
    )
    # After an error, forget the reported state, so that the recovered partition is sent again.
    is_well = result.error is ErrorCode.none
    cached.high_watermark = result.high_watermark if is_well else NO_OFFSET
    cached.log_start_offset = result.log_start_offset
    if has_records and plan.is_incremental:
        session.serve_last(cached)
    return is_news


def _leader(
    request: Request, name: str | None, index: int, error: ErrorCode
) -> CurrentLeader | None:
    return None if name is None else current_leader(request, error, TopicPartition(name, index))
