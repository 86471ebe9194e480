"""Produce (key 0), versions 3-13.

The response is sent when every partition has a result: after the append for acks=1, at the high
watermark for acks=all. With acks=0 there is no response. As in Kafka, an error then closes the
connection, because it cannot be reported otherwise. Version 13 names topics by id (KIP-516).
From version 10 on, the response includes a partition's new leader (KIP-951). Before records of a
transaction are appended, the transaction's coordinator confirms the transaction. From version 12 on
(transaction version 2) the leader also adds the partition to it (KIP-890).

With an authorizer, a topic needs the operation Write, and so does the transactional id.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from tidelog.api.access.permits import permits
from tidelog.api.groups.internal_topics import INTERNAL_TOPICS
from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.records.leaders import current_leader, endpoints_of
from tidelog.api.slicing import PAUSE, chunks
from tidelog.model.effects import (
    AppendBatches,
    AppendInTransaction,
    AppendResult,
    PartitionAppend,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint, TopicRef
from tidelog.protocol.produce import PartitionProduced, ProduceRequest, ProduceResponse, RecordError
from tidelog.protocol.records.batch import (
    COMPRESSION_MASK,
    TRANSACTIONAL_MASK,
    ZSTD,
    peek_attributes,
)
from tidelog.security.acls import AclOperation, AclResource

VALID_ACKS = (-1, 0, 1)
LONG = 500
"""A request with more topics and partitions than this is handled in parts."""
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_ABORTABLE = 11
_FIRST_THAT_ADDS = 12
_ADMIN_CLIENT = "__admin_client"
"""The client id that may write to internal topics, as in Kafka."""


class _Topic(NamedTuple):
    ref: TopicRef
    name: str | None
    partitions: list[int]


_Refusals: TypeAlias = dict[tuple[TopicRef, int], ErrorCode]
"""The errors of records that are refused before the append, by topic and partition."""


def handle(request: Request) -> Handling:
    """Appends record batches; waits for `acks`."""
    message: ProduceRequest = request.message
    # The records are views of a buffer that is returned to the host after the append, so keep no
    # reference to them.
    request.message = None
    if message.entries > LONG:
        return (yield from _handle_long(request, message))
    acks, timeout_ms = message.acks, message.timeout_ms
    topics = [
        _Topic(ref, _name(request, ref), [partition for partition, _ in partitions])
        for ref, partitions in message.topics
        if partitions
    ]
    refusals = _refusals(request, topics, message)
    if request.authorizer is not None:
        refusals |= _denials(request, topics, message)
    appends = _appends(topics, message, refusals)
    transactional_id = message.transactional_id
    del message
    appended: Sequence[AppendResult] = ()
    if appends:
        effects: list[AppendBatches | AppendInTransaction]
        if transactional_id is None:
            effects = [AppendBatches(appends, acks, timeout_ms)]
        else:
            effects = [_in_transaction(request, transactional_id, appends, acks, timeout_ms)]
        del appends
        appended = yield effects.pop()
    if acks == 0:
        return _silent(refusals, appended)
    return _response(request, topics, refusals, appended)


def _handle_long(request: Request, message: ProduceRequest) -> Handling:
    """Append in parts. The timeout of each part is the time that is left for the request."""
    deadline = request.now + message.timeout_ms
    answers: list[tuple[TopicRef, list[PartitionProduced]]] = []
    endpoints: dict[NodeEndpoint, None] = {}
    failed: Disconnect | None = None
    for part in _parts(message):
        yield PAUSE
        part.timeout_ms = max(0, deadline - request.now)
        request.message = part
        answer = yield from handle(request)
        if isinstance(answer, ProduceResponse):
            for ref, row in answer.topics:
                if answers and answers[-1][0] == ref:
                    answers[-1][1].extend(row)
                else:
                    answers.append((ref, list(row)))
            endpoints.update(dict.fromkeys(answer.node_endpoints))
        else:
            failed = failed or answer
    if message.acks == 0:
        return failed
    return ProduceResponse(answers, node_endpoints=list(endpoints))


def _parts(message: ProduceRequest) -> Iterator[ProduceRequest]:
    flat = [(ref, one) for ref, partitions in message.topics for one in partitions]
    for chunk in chunks(flat, LONG // 2):
        topics = [(ref, [one for _, one in group]) for ref, group in groupby(chunk, itemgetter(0))]
        entries = len(chunk) + len(topics)
        yield ProduceRequest(message.transactional_id, message.acks, 0, topics, entries)


def _name(request: Request, ref: TopicRef) -> str | None:
    return ref if isinstance(ref, str) else request.image.topic_names.get(ref)


# -- before the append -----------------------------------------------------------------------------


def _refusals(request: Request, topics: list[_Topic], message: ProduceRequest) -> _Refusals:
    if message.transactional_id is None and _has_transactional(message):
        denied = ErrorCode.transactional_id_authorization_failed
        return {(topic.ref, index): denied for topic in topics for index in topic.partitions}
    refusals: _Refusals = {}
    has_valid_acks = message.acks in VALID_ACKS
    for topic in topics:
        error = _refusal(request, topic.name, has_valid_acks)
        if error is not None:
            for index in topic.partitions:
                refusals[topic.ref, index] = _missing_partition(request, topic.name, index) or error
    if request.version < _FIRST_WITH_ZSTD:
        for ref, partitions in message.topics:
            for index, records in partitions:
                if records is not None and peek_attributes(records) & COMPRESSION_MASK == ZSTD:
                    refusals.setdefault((ref, index), ErrorCode.unsupported_compression_type)
    return refusals


def _denials(request: Request, topics: list[_Topic], message: ProduceRequest) -> _Refusals:
    """The partitions to which the client may not write; this error goes before all others."""
    transaction, denied = message.transactional_id, ErrorCode.topic_authorization_failed
    names = [topic.name for topic in topics]
    if (
        transaction is not None
        and _has_transactional(message)
        and not permits(request, AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, transaction)
    ):
        denied, names = ErrorCode.transactional_id_authorization_failed, []
    allowed = {
        name
        for name in dict.fromkeys(names)
        if name is None or permits(request, AclOperation.WRITE, AclResource.TOPIC, name)
    }
    return {
        (topic.ref, index): denied
        for topic in topics
        if topic.name not in allowed
        for index in topic.partitions
    }


def _has_transactional(message: ProduceRequest) -> bool:
    for _, partitions in message.topics:
        for _, records in partitions:
            if records is not None and peek_attributes(records) & TRANSACTIONAL_MASK:
                return True
    return False


def _refusal(request: Request, name: str | None, has_valid_acks: bool) -> ErrorCode | None:
    if name is None:
        return ErrorCode.unknown_topic_id
    if not has_valid_acks:
        return ErrorCode.invalid_required_acks
    if name in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT:
        return ErrorCode.invalid_topic_exception
    return None


def _missing_partition(request: Request, name: str | None, index: int) -> ErrorCode | None:
    """UNKNOWN_TOPIC_OR_PARTITION, which overrides other errors, if the partition does not exist."""
    if name is None or request.image.partition(TopicPartition(name, index)) is not None:
        return None
    return ErrorCode.unknown_topic_or_partition


def _appends(
    topics: list[_Topic], message: ProduceRequest, refusals: _Refusals
) -> list[PartitionAppend]:
    offered = [partitions for _, partitions in message.topics if partitions]
    return [
        PartitionAppend(TopicPartition(topic.name, partition), records)
        for topic, partitions in zip(topics, offered, strict=True)
        if topic.name is not None
        for partition, records in partitions
        if not refusals or (topic.ref, partition) not in refusals
    ]


def _in_transaction(
    request: Request,
    transactional_id: str,
    appends: list[PartitionAppend],
    acks: int,
    timeout_ms: int,
) -> AppendInTransaction:
    return AppendInTransaction(
        transactional_id,
        appends,
        acks,
        timeout_ms,
        adds=request.version >= _FIRST_THAT_ADDS,
        names_abortable=request.version >= _FIRST_WITH_ABORTABLE,
    )


# -- after the append ------------------------------------------------------------------------------


def _silent(refusals: _Refusals, appended: Sequence[AppendResult]) -> Disconnect | None:
    for error in (*refusals.values(), *(result.error for result in appended)):
        if error is not ErrorCode.none:
            return Disconnect(f"sent Produce with acks=0 that failed: {error.name}")
    return None


def _response(
    request: Request, topics: list[_Topic], refusals: _Refusals, appended: Sequence[AppendResult]
) -> ProduceResponse:
    results = iter(appended)
    leaders: dict[int, None] = {}
    answers: list[tuple[TopicRef, list[PartitionProduced]]] = []
    for ref, name, partitions in topics:
        row: list[PartitionProduced] = []
        for index in partitions:
            if refusals and (ref, index) in refusals:
                row.append(PartitionProduced(index, refusals[ref, index]))
                continue
            result = next(results)
            if result.error is ErrorCode.none:
                _, base, time, start, _, _ = result
                row.append(PartitionProduced(index, ErrorCode.none, base, time, start))
                continue
            assert name is not None
            leader = current_leader(request, result.error, TopicPartition(name, index))
            if leader is not None:
                leaders[leader.leader_id] = None
            row.append(_failed(index, result, leader))
        answers.append((ref, row))
    return ProduceResponse(answers, node_endpoints=endpoints_of(request, leaders))


def _failed(index: int, result: AppendResult, leader: CurrentLeader | None) -> PartitionProduced:
    return PartitionProduced(
        index,
        result.error,
        log_start_offset=result.log_start_offset,
        record_errors=tuple(RecordError(*blamed) for blamed in result.record_errors),
        error_message=result.message,
        current_leader=leader,
    )
