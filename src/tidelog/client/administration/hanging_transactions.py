"""Finds transactions in partitions that no coordinator will end, by Kafka's rule.

A transaction is suspicious if its producer has not written for longer than any transaction may
last. It hangs if no coordinator knows its producer, or if the transaction of this producer does not
contain the partition: then nobody will send a marker (F72).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kio.schema.describe_producers.v0.response import ProducerState

from tidelog.client.admin import RequestRefused
from tidelog.client.administration import transaction_admin
from tidelog.client.client import Client
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Millis, NodeId, ProducerId, TopicPartition


class HangingTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerState


def find_hanging(
    client: Client,
    partitions: Iterable[TopicPartition],
    broker: NodeId | None,
    last_write_before: Millis,
) -> Iterator[HangingTransaction]:
    """The transactions that hang, of those whose producer last wrote before this time."""
    suspicious = [
        HangingTransaction(partition, producer)
        for partition in partitions
        for producer in transaction_admin.describe_producers(client, partition, broker)
        if producer.current_txn_start_offset != NO_OFFSET
        and producer.last_timestamp < last_write_before
    ]
    if not suspicious:
        return
    producer_ids = {one.producer.producer_id for one in suspicious}
    contained = dict(_contained(client, sorted(producer_ids)))
    for one in suspicious:
        if one.partition not in contained.get(one.producer.producer_id, frozenset()):
            yield one


def _contained(
    client: Client, producer_ids: list[ProducerId]
) -> Iterator[tuple[ProducerId, frozenset[TopicPartition]]]:
    """The partitions of each producer's open transaction."""
    for one in transaction_admin.list_transactions(client, producer_ids=producer_ids):
        try:
            _, state = transaction_admin.describe_transaction(client, one.transactional_id)
        except RequestRefused as refused:
            if refused.error is not ErrorCode.transactional_id_not_found:
                raise
            continue
        yield (
            one.producer_id,
            frozenset(
                TopicPartition(topic.topic, index)
                for topic in state.topics
                for index in topic.partitions
            ),
        )
