"""DescribeProducers (key 61), version 0.

DescribeProducers returns the producer state of a partition's log (KIP-664). Clients may also query
a follower, which has the same state as its leader.
"""

from datetime import timedelta

from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

from tidelog.api.handler import Disconnect, Handling, Request
from tidelog.api.slicing import PAUSE, Pace, in_slices
from tidelog.model.effects import (
    ActiveProducer,
    DescribeProducers,
    ProducersFound,
)
from tidelog.model.ids import TopicPartition

_SLICE = 500
_MAX_FOUND = 100_000
"""The maximum number of producers in a response. Without this limit, a request that names a
partition many times could get a response of any size.
"""


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
