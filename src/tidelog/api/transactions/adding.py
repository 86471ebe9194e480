"""AddPartitionsToTxn (key 24), versions 0-5, and AddOffsetsToTxn (25), versions 0-4.

Clients add the partitions of one transaction (versions 0-3). Partition leaders add or verify the
partitions of several transactions (from version 4 on, KIP-890). If one of the partitions does not
exist, none is added: the others get OPERATION_NOT_ATTEMPTED. AddOffsetsToTxn adds the partition in
which a group's offsets are stored.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse
from kio.schema.add_partitions_to_txn.v5.response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import Parts
from tidelog.api.transactions.errors import older_error
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.transactions.describing import by_topic
from tidelog.coordination.transactions.requests import AddPartitions
from tidelog.coordination.transactions.transaction import EPOCH_PER_TRANSACTION
from tidelog.model.effects import Coordinate
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

PARTS = Parts(
    ("transactions", "topics", "partitions"),
    ("results_by_transaction", "topic_results", "results_by_partition"),
)
_FIRST_FROM_BROKERS = 4
_FIRST_WITH_FENCED = 2


def add_partitions(request: Request) -> Handling:
    """Adds partitions to transactions, or verifies that they are in them."""
    results = []
    for transaction in request.message.transactions:
        partitions = [
            TopicPartition(topic.name, index)
            for topic in transaction.topics
            for index in topic.partitions
        ]
        errors = yield from _added(request, transaction, partitions)
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=_topic_results(partitions, errors),
            )
        )
    return AddPartitionsToTxnResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        results_by_transaction=tuple(results),
    )


def _added(request: Request, transaction: Any, partitions: Sequence[TopicPartition]) -> Handling:
    """The error of each partition."""
    missing = {one for one in partitions if request.image.partition(one) is None}
    if missing:
        return {
            one: ErrorCode.unknown_topic_or_partition
            if one in missing
            else ErrorCode.operation_not_attempted
            for one in partitions
        }
    if not transaction.transactional_id:
        return dict.fromkeys(partitions, ErrorCode.invalid_request)
    is_from_broker = request.version >= _FIRST_FROM_BROKERS
    unique = tuple(dict.fromkeys(partitions))
    asked = AddPartitions(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        epoch=transaction.producer_epoch,
        partitions=unique,
        client_version=EPOCH_PER_TRANSACTION if is_from_broker else 0,
        verify_only=is_from_broker and transaction.verify_only,
    )
    added = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
    return {
        one: older_error(error, request.version, _FIRST_WITH_FENCED)
        for one, error in zip(unique, added.errors, strict=True)
    }


def _topic_results(
    partitions: Sequence[TopicPartition], errors: Mapping[TopicPartition, ErrorCode]
) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    return tuple(
        AddPartitionsToTxnTopicResult(
            name=topic,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=errors[TopicPartition(topic, index)],
                )
                for index in indexes
            ),
        )
        for topic, indexes in by_topic(partitions).items()
    )


def add_offsets_to_txn(request: Request) -> Handling:
    """Adds the offsets of a group to a transaction."""
    message = request.message
    error = ErrorCode.none
    topic = request.image.topics.get(CONSUMER_OFFSETS)
    if not message.transactional_id:
        error = ErrorCode.invalid_request
    elif topic is None:
        error = ErrorCode.coordinator_not_available
    else:
        index = partition_for(message.group_id, len(topic.partitions))
        asked = AddPartitions(
            transactional_id=message.transactional_id,
            producer_id=message.producer_id,
            epoch=message.producer_epoch,
            partitions=(TopicPartition(CONSUMER_OFFSETS, index),),
        )
        added = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
        error = older_error(added.errors[0], request.version, _FIRST_WITH_FENCED)
    return AddOffsetsToTxnResponse(throttle_time=timedelta(0), error_code=error)
