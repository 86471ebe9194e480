"""Produce (key 0), versions 3-13.

Answers when every partition has answered: at once for acks=1, at the high watermark for acks=all.
With acks=0 there is no answer; if anything went wrong the connection is closed, which is the only
way to tell the client (as Kafka does). Version 13 names topics by id (KIP-516). From version 10 on
a partition that is led elsewhere comes with its leader (KIP-951).
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.leaders import current_leader, endpoints_of
from tidelog.model.effects import AppendBatches, AppendResult, PartitionAppend
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.pieces import CurrentLeader, TopicRef
from tidelog.protocol.produce import PartitionProduced, ProduceRequest, ProduceResponse, RecordError

VALID_ACKS = (-1, 0, 1)


class _Topic(NamedTuple):
    ref: TopicRef
    name: str | None
    partitions: list[int]


def handle(request: Request) -> Handling:
    """Appends record batches; waits for `acks`."""
    message: ProduceRequest = request.message
    # The records are views of a buffer that is the host's again once the append is done.
    request.message = None
    acks, timeout_ms = message.acks, message.timeout_ms
    topics = [
        _Topic(ref, _name(request, ref), [partition for partition, _ in partitions])
        for ref, partitions in message.topics
    ]
    if acks in VALID_ACKS:
        appends = _appends(topics, message)
        del message
        appended = yield AppendBatches(appends, acks, timeout_ms)
    else:
        del message
        refused = AppendResult(ErrorCode.invalid_required_acks)
        named = [topic for topic in topics if topic.name is not None]
        appended = [refused for topic in named for _ in topic.partitions]
    if acks == 0:
        return _silent(topics, appended)
    return _response(request, topics, appended)


def _name(request: Request, ref: TopicRef) -> str | None:
    return ref if isinstance(ref, str) else request.image.topic_names.get(ref)


def _appends(topics: list[_Topic], message: ProduceRequest) -> list[PartitionAppend]:
    return [
        PartitionAppend(TopicPartition(topic.name, partition), records)
        for topic, (_, partitions) in zip(topics, message.topics, strict=True)
        if topic.name is not None
        for partition, records in partitions
    ]


def _silent(topics: list[_Topic], appended: Sequence[AppendResult]) -> Disconnect | None:
    errors = [result.error for result in appended if result.error is not ErrorCode.none]
    errors += [ErrorCode.unknown_topic_id for topic in topics if topic.name is None]
    if not errors:
        return None
    return Disconnect(f"sent Produce with acks=0 that failed: {errors[0].name}")


def _response(
    request: Request, topics: list[_Topic], appended: Sequence[AppendResult]
) -> ProduceResponse:
    results = iter(appended)
    leaders: dict[int, None] = {}
    answers: list[tuple[TopicRef, list[PartitionProduced]]] = []
    for ref, name, partitions in topics:
        if name is None:
            unknown = ErrorCode.unknown_topic_id
            answers.append((ref, [PartitionProduced(index, unknown) for index in partitions]))
            continue
        row: list[PartitionProduced] = []
        for index in partitions:
            error, base, time, start, text = next(results)
            if error is ErrorCode.none:
                row.append(PartitionProduced(index, error, base, time, start))
            else:
                leader = current_leader(request.image, error, TopicPartition(name, index))
                if leader is not None:
                    leaders[leader.leader_id] = None
                row.append(_failed(index, error, start, text, leader))
        answers.append((ref, row))
    return ProduceResponse(answers, node_endpoints=endpoints_of(request, leaders))


def _failed(
    index: int, error: ErrorCode, start: int, text: str | None, leader: CurrentLeader | None
) -> PartitionProduced:
    """Kafka names the bad records; we look at whole batches, so it is the first."""
    errors = (RecordError(0, text),) if error is ErrorCode.invalid_record else ()
    return PartitionProduced(
        index, error, -1, -1, start, record_errors=errors, error_message=text, current_leader=leader
    )
