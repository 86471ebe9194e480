"""Asks transaction coordinators, on this broker or on others, on behalf of partition leaders."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnResponse

from tidelog.api.groups.internal_topics import TRANSACTION_STATE
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import Endpoint
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.transactions.describing import by_topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, ProducerId, TopicPartition
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Peers, Unanswered, coded
from tidelog.node.ready import ReadyQueue

ADD_PARTITIONS_VERSION = 5

Errors: TypeAlias = Mapping[TopicPartition, ErrorCode]


class Joining(NamedTuple):
    """The partitions that a producer writes to in a transaction."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool
    """Whether the client has added the partitions itself (transaction version 1)."""


class TransactionCoordinators:
    def __init__(
        self, settings: BrokerSettings, peers: Peers, ready: ReadyQueue, current: CurrentImage
    ) -> None:
        self._settings = settings
        self._ready = ready
        self._current = current
        self._channels: Channels[NodeId] = Channels(peers)

    def join(self, joining: Joining, done: Callable[[Errors], None]) -> None:
        """Add partitions to a transaction, or verify that they are in it; `done` gets the errors.

        `done` is called from the ready queue, never within this call.
        """
        coordinator = self._coordinator(joining.transactional_id)
        if coordinator is None:
            unknown = dict.fromkeys(joining.partitions, ErrorCode.coordinator_not_available)
            self._ready.add((done, (unknown,)))
            return
        node, endpoint = coordinator
        channel = self._channels.get(node, (endpoint.host, endpoint.port))
        encode, decode = coded(_request(joining), ADD_PARTITIONS_VERSION)

        def answered(answer: Any) -> None:
            done(_errors(joining, answer))

        channel.request(encode, decode, answered, self._settings.request_timeout_ms)

    def _coordinator(self, transactional_id: str) -> tuple[NodeId, Endpoint] | None:
        image = self._current.image
        topic = image.topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
        listener = self._settings.inter_broker_listener_name
        endpoint = broker_endpoint(image, leader, listener)
        return None if endpoint is None else (leader, endpoint)


def _request(joining: Joining) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=(
            AddPartitionsToTxnTransaction(
                transactional_id=joining.transactional_id,
                producer_id=joining.producer_id,
                producer_epoch=joining.epoch,
                verify_only=joining.verify_only,
                topics=tuple(
                    AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(joining.partitions).items()
                ),
            ),
        )
    )


def _errors(joining: Joining, answer: AddPartitionsToTxnResponse | Unanswered) -> Errors:
    if isinstance(answer, Unanswered):
        return dict.fromkeys(joining.partitions, ErrorCode.network_exception)
    if answer.error_code is not ErrorCode.none:
        return dict.fromkeys(joining.partitions, answer.error_code)
    found = dict(_results(answer))
    return {one: found.get(one, ErrorCode.unknown_server_error) for one in joining.partitions}


def _results(
    answer: AddPartitionsToTxnResponse,
) -> Iterable[tuple[TopicPartition, ErrorCode]]:
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for one in topic.results_by_partition:
                yield TopicPartition(topic.name, one.partition_index), one.partition_error_code
