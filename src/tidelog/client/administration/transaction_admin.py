"""Lists, describes and ends transactions, on any Kafka cluster."""

import time
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import NamedTuple

from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_producers.v0.response import DescribeProducersResponse, ProducerState
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from kio.schema.write_txn_markers.v1.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.schema.write_txn_markers.v1.response import WriteTxnMarkersResponse

from tidelog.client.admin import RequestRefused
from tidelog.client.client import PAUSE_SECONDS, RETRY_SECONDS, Client
from tidelog.client.coordinators import TRANSACTION, ask_coordinator
from tidelog.client.kafka_exceptions import default_message
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId, ProducerId, TopicPartition

FENCE_TIMEOUT = timedelta(seconds=30)


class ListedTransaction(NamedTuple):
    transactional_id: str
    coordinator: NodeId
    producer_id: ProducerId
    state: str


class OpenTransaction(NamedTuple):
    """A transaction in a partition's log, and the marker that would abort it."""

    partition: TopicPartition
    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int


def list_transactions(
    client: Client,
    *,
    longer_than_ms: int = -1,
    pattern: str | None = None,
    producer_ids: Iterable[ProducerId] = (),
) -> list[ListedTransaction]:
    """The transactional ids of all coordinators that match the filters."""
    request = ListTransactionsRequest(
        state_filters=(),
        producer_id_filters=tuple(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    found: list[ListedTransaction] = []
    for node in client.node_ids():
        answer = client.ask_node(node, request, ListTransactionsResponse)
        _check(answer.error_code)
        found += [
            ListedTransaction(
                one.transactional_id, node, one.producer_id, str(one.transaction_state)
            )
            for one in answer.transaction_states
        ]
    return found


def describe_transaction(client: Client, transactional_id: str) -> tuple[NodeId, TransactionState]:
    """The coordinator of a transactional id, and the state of its transaction."""
    coordinator, answer = ask_coordinator(
        client,
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=(transactional_id,)),
        DescribeTransactionsResponse,
        lambda response: response.transaction_states[0].error_code,
        key_type=TRANSACTION,
    )
    state = answer.transaction_states[0]
    _check(state.error_code)
    return coordinator.node, state


def describe_producers(
    client: Client, partition: TopicPartition, broker: NodeId | None = None
) -> tuple[ProducerState, ...]:
    """The producers with state in a partition, on its leader or on the replica of `broker`."""
    node = _leader(client, partition) if broker is None else broker
    topic = TopicRequest(name=partition.topic, partition_indexes=(partition.partition,))
    request = DescribeProducersRequest(topics=(topic,))
    answer = client.ask_node(node, request, DescribeProducersResponse)
    found = answer.topics[0].partitions[0]
    _check(found.error_code, found.error_message)
    return found.active_producers


def abort_transaction(client: Client, transaction: OpenTransaction) -> None:
    """Write the marker that aborts a transaction in one partition, without its coordinator."""
    partition = transaction.partition
    marker = WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=False,
        topics=(
            WritableTxnMarkerTopic(name=partition.topic, partition_indexes=(partition.partition,)),
        ),
        coordinator_epoch=transaction.coordinator_epoch,
    )
    request = WriteTxnMarkersRequest(markers=(marker,))
    answer = client.ask_node(_leader(client, partition), request, WriteTxnMarkersResponse)
    _check(answer.markers[0].topics[0].partitions[0].error_code)


def force_terminate(client: Client, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id, and fence its producer."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout=FENCE_TIMEOUT
    )
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        _, answer = ask_coordinator(
            client,
            transactional_id,
            request,
            InitProducerIdResponse,
            lambda response: response.error_code,
            key_type=TRANSACTION,
        )
        is_ending = answer.error_code is ErrorCode.concurrent_transactions
        if not is_ending or time.monotonic() > deadline:
            return _check(answer.error_code)
        time.sleep(PAUSE_SECONDS)


def partitions_with_replicas(
    client: Client, topics: tuple[str, ...] | None
) -> dict[TopicPartition, Collection[NodeId]]:
    """The partitions of these topics, or of all topics, that have a leader, and their replicas."""
    return {
        TopicPartition(topic.name or "", one.partition_index): one.replica_nodes
        for topic in client.metadata(topics).topics
        for one in topic.partitions
        if one.leader_id != NO_NODE
    }


def _leader(client: Client, partition: TopicPartition) -> NodeId:
    client.partitions(partition.topic)  # waits until every partition has a leader
    leader = client.leader(partition)
    if leader == NO_NODE:
        raise RequestRefused(ErrorCode.unknown_topic_or_partition, None)
    return leader


def _check(error: ErrorCode, message: str | None = None) -> None:
    if error is not ErrorCode.none:
        raise RequestRefused(error, message or default_message(error))
