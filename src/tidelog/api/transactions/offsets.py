"""TxnOffsetCommit (key 28), versions 0-5.

Commits the offsets of a group as part of a transaction. Before that, the transaction's coordinator
confirms that the partition of the group's offsets belongs to the transaction. From version 5 on
(transaction version 2) the group coordinator adds the partition itself (KIP-890).
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.txn_offset_commit.v5.response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS
from tidelog.api.handler import Handling, Request
from tidelog.coordination.offsets.transactional import refused_txn_commit
from tidelog.coordination.partitioning import partition_for
from tidelog.model.effects import Coordinate, JoinTransaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

_FIRST_WITH_ABORTABLE = 4
_FIRST_THAT_ADDS = 5
_ERRORS = {
    # Clients retry after this error without looking for another coordinator.
    ErrorCode.network_exception: ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.producer_fenced: ErrorCode.invalid_producer_epoch,
}


def txn_offset_commit(request: Request) -> Handling:
    """Commits offsets of a group in a transaction."""
    message = request.message
    if not message.transactional_id or not message.group_id:
        invalid = ErrorCode.invalid_group_id if message.transactional_id else _INVALID
        return refused_txn_commit(message, invalid)
    committed: dict[TopicPartition, ErrorCode] = {}
    valid = _existing(request)
    if valid:
        error = yield from _joined(request)
        if error is not ErrorCode.none:
            return refused_txn_commit(message, error)
        response = yield Coordinate(message.group_id, replace(message, topics=valid))
        committed = {
            TopicPartition(topic.name, one.partition_index): one.error_code
            for topic in response.topics
            for one in topic.partitions
        }
    return TxnOffsetCommitResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=committed.get(
                            TopicPartition(topic.name, one.partition_index),
                            ErrorCode.unknown_topic_or_partition,
                        ),
                    )
                    for one in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )


_INVALID = ErrorCode.invalid_request


def _existing(request: Request) -> tuple[Any, ...]:
    """The topics of the request, with the partitions that exist."""
    found = []
    for topic in request.message.topics:
        partitions = tuple(
            one
            for one in topic.partitions
            if request.image.partition(TopicPartition(topic.name, one.partition_index))
        )
        if partitions:
            found.append(replace(topic, partitions=partitions))
    return tuple(found)


def _joined(request: Request) -> Handling:
    """Make sure that the partition of the group's offsets belongs to the transaction."""
    message = request.message
    topic = request.image.topics.get(CONSUMER_OFFSETS)
    if topic is None:
        return ErrorCode.coordinator_not_available
    index = partition_for(message.group_id, len(topic.partitions))
    error = yield JoinTransaction(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        TopicPartition(CONSUMER_OFFSETS, index),
        adds=request.version >= _FIRST_THAT_ADDS,
    )
    if error is ErrorCode.transaction_abortable and request.version < _FIRST_WITH_ABORTABLE:
        return ErrorCode.invalid_txn_state
    return _ERRORS.get(error, error)
