"""InitProducerId (key 22), versions 0-5, and DescribeProducers (61), version 0.

InitProducerId assigns an id with epoch 0 to an idempotent producer, from the block that the
controller allocated to this broker (KIP-730). If a producer without a transactional id sends its
old id and epoch (from version 3 on, KIP-360), it gets a new id. An id without an epoch, or an epoch
without an id, gets INVALID_REQUEST.

An empty transactional id gets INVALID_REQUEST, and a timeout above `transaction.max.timeout.ms`
gets INVALID_TRANSACTION_TIMEOUT. Any other request with a transactional id gets
COORDINATOR_NOT_AVAILABLE, because Tidelog has no transaction coordinator yet.

DescribeProducers returns the producer state of a partition's log (KIP-664). Clients may also query
a follower, which has the same state as its leader.
"""

from datetime import timedelta

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse

from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.slicing import PAUSE, Pace, in_slices
from tidelog.model.effects import (
    ActiveProducer,
    ChangeMetadata,
    DescribeProducers,
    ProducersFound,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, TopicPartition

_NO_PRODUCER_EPOCH = -1
_SLICE = 500
_MAX_FOUND = 100_000
"""The maximum number of producers in a response. Without this limit, a request that names a
partition many times could get a response of any size.
"""


def init_producer_id(request: Request) -> Handling:
    """Assigns a producer id and epoch."""
    error = _refusal(request)
    if error is not ErrorCode.none:
        return _refused(error)
    producer_id = request.producer_ids.take()
    while producer_id is None:
        block = yield ChangeMetadata(_allocation(request))
        if block.error_code is not ErrorCode.none:
            # As in Kafka, this error makes the client retry until a block has arrived.
            return _refused(ErrorCode.coordinator_load_in_progress)
        request.producer_ids.add(block.producer_id_start, block.producer_id_len)
        producer_id = request.producer_ids.take()
    return InitProducerIdResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        producer_id=producer_id,
        producer_epoch=0,
    )


def _refusal(request: Request) -> ErrorCode:
    message = request.message
    has_id = message.producer_id != NO_PRODUCER
    has_epoch = message.producer_epoch != _NO_PRODUCER_EPOCH
    if has_id is not has_epoch or message.transactional_id == "":
        return ErrorCode.invalid_request
    if message.transactional_id is None:
        return ErrorCode.none
    limit = timedelta(milliseconds=request.settings.transaction_max_timeout_ms)
    if not timedelta(0) < message.transaction_timeout <= limit:
        return ErrorCode.invalid_transaction_timeout
    return ErrorCode.coordinator_not_available


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=timedelta(0), error_code=error, producer_epoch=_NO_PRODUCER_EPOCH
    )


def describe_producers(request: Request) -> Handling:
    """Lists the idempotent producers that have written to partitions."""
    topics: list[TopicResponse] = []
    pace, count = Pace(_SLICE), 0
    for topic in request.message.topics:
        partitions: list[PartitionResponse] = []
        for index in topic.partition_indexes:
            (found,) = yield DescribeProducers([TopicPartition(topic.name, index)])
            count += len(found.producers)
            if count > _MAX_FOUND:
                return Disconnect(f"sent DescribeProducers for more than {_MAX_FOUND} producers")
            has_topic = topic.name in request.image.topics
            partitions.append((yield from _described(index, found, has_topic=has_topic)))
            if pace.is_due(1 + len(found.producers)):
                yield PAUSE
        topics.append(TopicResponse(name=topic.name, partitions=tuple(partitions)))
    return DescribeProducersResponse(throttle_time=timedelta(0), topics=tuple(topics))


def _described(index: int, found: ProducersFound, *, has_topic: bool) -> Handling:
    producers = yield from in_slices(found.producers, _producer, _SLICE)
    return PartitionResponse(
        partition_index=index,
        error_code=found.error,
        error_message=None if has_topic else "This server does not host this topic-partition.",
        active_producers=tuple(producers),
    )


def _producer(one: ActiveProducer) -> ProducerState:
    return ProducerState(
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        last_sequence=one.last_sequence,
        last_timestamp=one.last_timestamp,
        coordinator_epoch=one.coordinator_epoch,
        current_txn_start_offset=one.transaction_start,
    )


def _allocation(request: Request) -> AllocateProducerIdsRequest:
    broker = request.image.brokers.get(request.node_id)
    return AllocateProducerIdsRequest(
        broker_id=request.node_id, broker_epoch=-1 if broker is None else broker.epoch
    )
