"""Markers as WriteTxnMarkers messages."""

from collections.abc import Iterable, Mapping, Sequence

from kio.schema.write_txn_markers.v2.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.schema.write_txn_markers.v2.response import WriteTxnMarkersResponse

from tidelog.coordination.transactions.describing import by_topic
from tidelog.coordination.transactions.markers import TxnMarker
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ProducerId, TopicPartition

WRITE_TXN_MARKERS_VERSION = 2
"""Version 2 carries the transaction version, without which a leader cannot tell a late marker from
the marker of the next transaction (KIP-1228)."""
LOWEST_WRITE_TXN_MARKERS_VERSION = 1
"""The version that Apache Kafka brokers before 4.2 support. It has no transaction version."""


def request_of(markers: Iterable[TxnMarker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=tuple(
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.epoch,
                transaction_result=marker.commits,
                topics=tuple(
                    WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(marker.partitions).items()
                ),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.client_version,
            )
            for marker in markers
        )
    )


def errors_of(
    response: WriteTxnMarkersResponse, markers: Sequence[TxnMarker]
) -> Iterable[tuple[TxnMarker, Mapping[TopicPartition, ErrorCode]]]:
    """The result of each marker. A marker that the response lacks has no results."""
    by_producer: dict[ProducerId, dict[TopicPartition, ErrorCode]] = {
        one.producer_id: {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in one.topics
            for partition in topic.partitions
        }
        for one in response.markers
    }
    for marker in markers:
        yield marker, by_producer.get(marker.producer_id, {})
