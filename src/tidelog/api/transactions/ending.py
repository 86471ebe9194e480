"""EndTxn (key 26), versions 0-5, and WriteTxnMarkers (27), versions 1-2.

EndTxn is answered when the decision is committed, before the markers are written. From version 5 on
(transaction version 2) the response has the producer's next epoch. WriteTxnMarkers is sent by
transaction coordinators, and by administrators to abort a hanging transaction. Version 2 carries
the transaction version (KIP-1228).
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

from tidelog.api.groups.internal_topics import TRANSACTION_STATE
from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import Parts
from tidelog.api.transactions.errors import older_error
from tidelog.api.transactions.init_producer_id import new_producer_id
from tidelog.coordination.transactions.requests import EndTransaction, ProducerAssigned
from tidelog.coordination.transactions.transaction import EPOCH_PER_TRANSACTION
from tidelog.model.effects import Coordinate, MarkerWrite, WriteMarkers
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

PARTS = Parts(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions"), 50)
_FIRST_WITH_FENCED = 2
_FIRST_WITH_EPOCHS = 5


def end_txn(request: Request) -> Handling:
    """Commits or aborts a transaction."""
    message = request.message
    if not message.transactional_id:
        return _ended(ProducerAssigned(ErrorCode.invalid_request))
    asked = EndTransaction(
        transactional_id=message.transactional_id,
        producer_id=message.producer_id,
        epoch=message.producer_epoch,
        commits=message.committed,
        client_version=EPOCH_PER_TRANSACTION if request.version >= _FIRST_WITH_EPOCHS else 0,
    )
    ended = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
    if ended.needs_producer_id:
        producer_id = yield from new_producer_id(request)
        if producer_id is None:
            return _ended(ProducerAssigned(ErrorCode.coordinator_load_in_progress))
        asked = replace(asked, new_producer_id=producer_id)
        ended = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
    error = older_error(ended.error, request.version, _FIRST_WITH_FENCED)
    return _ended(ended._replace(error=error))


def _ended(ended: ProducerAssigned) -> EndTxnResponse:
    return EndTxnResponse(
        throttle_time=timedelta(0),
        error_code=ended.error,
        producer_id=ended.producer_id,
        producer_epoch=ended.epoch,
    )


def write_txn_markers(request: Request) -> Handling:
    """Ends transactions in the partitions that this broker leads."""
    markers = list(_markers(request.message))
    errors = yield WriteMarkers(markers, request.settings.request_timeout_ms)
    left = iter(errors)
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=next(left)
                            )
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.message.markers
        )
    )


def _markers(message: Any) -> Iterator[MarkerWrite]:
    for marker in message.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                yield MarkerWrite(
                    TopicPartition(topic.name, index),
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.transaction_result,
                    marker.coordinator_epoch,
                    raises_epoch=marker.transaction_version >= EPOCH_PER_TRANSACTION,
                )
