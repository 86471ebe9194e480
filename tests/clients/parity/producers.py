"""Idempotent producers: sequences and epochs in Produce, InitProducerId, DescribeProducers."""

from typing import Any

from tests.clients.batches import Batch, Record
from tests.clients.parity import case
from tests.clients.parity.produce import TRANSACTIONAL, offer, producing
from tests.clients.talk import Talk, Topic


def numbered(sequence: int, records: int = 1, epoch: int = 0, producer: int = 4321) -> Batch:
    return Batch(
        records=(Record(),) * records,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


@case("Produce")
def idempotent_duplicates(t: Talk) -> None:
    topic = offer(t, *(numbered(2 * n, 2) for n in range(4)))
    for n in (3, 0, 2):
        t.ask(producing(topic, numbered(2 * n, 2).encode()))
    t.look(topic)


@case("Produce")
def idempotent_duplicate_too_old(t: Talk) -> None:
    topic = offer(t, *(numbered(n) for n in range(7)))
    for n in (0, 1, 2, 6):
        t.ask(producing(topic, numbered(n).encode()))


@case("Produce")
def idempotent_gap(t: Talk) -> None:
    topic = offer(t, numbered(0), numbered(2), numbered(1), numbered(2))
    t.look(topic)


@case("Produce")
def idempotent_partial_overlap(t: Talk) -> None:
    offer(t, numbered(0, 3), numbered(1, 2), numbered(2, 2), numbered(0, 2), numbered(0, 4))


@case("Produce")
def idempotent_first_sequence_not_zero(t: Talk) -> None:
    offer(t, numbered(5), numbered(6))


@case("Produce")
def idempotent_new_epoch(t: Talk) -> None:
    offer(
        t,
        numbered(0),
        numbered(1, epoch=1),
        numbered(0, epoch=1),
        numbered(1, epoch=0),
        numbered(1, epoch=1),
    )


@case("Produce")
def idempotent_sequence_wraps(t: Talk) -> None:
    last = 2**31 - 1
    offer(t, numbered(last - 1, 2), numbered(0), numbered(last, 3), numbered(2))


@case("Produce")
def idempotent_fields_disagree(t: Talk) -> None:
    offer(t, numbered(-1))
    offer(t, numbered(0, epoch=-1))
    offer(t, numbered(0, producer=-1))


@case("Produce")
def transactional_batch_without_a_transaction(t: Talk) -> None:
    topic = t.topic()
    t.ask(producing(topic, numbered(0).but(attributes=TRANSACTIONAL).encode()))


# -- InitProducerId --------------------------------------------------------------------------------


def ready(t: Talk) -> None:
    """Wait until the broker can allocate producer ids."""
    asking = {"transactionalId": None, "transactionTimeoutMs": 60000}
    t.until(lambda: t.quietly("InitProducerId", 4, asking)["errorCode"] == 0, "producer ids")


@case("InitProducerId")
def two_producers(t: Talk) -> None:
    ready(t)
    for _ in range(2):
        t.ask({"transactionalId": None, "transactionTimeoutMs": 60000})


@case("InitProducerId")
def odd_timeouts(t: Talk) -> None:
    ready(t)
    for timeout in (0, -1, 2**31 - 1):
        t.ask({"transactionalId": None, "transactionTimeoutMs": timeout})


@case("InitProducerId")
def empty_transactional_id(t: Talk) -> None:
    t.ask({"transactionalId": "", "transactionTimeoutMs": 60000})


@case("InitProducerId", lowest=3)
def producer_id_given(t: Talk) -> None:
    ready(t)
    given = t.ask({"transactionalId": None, "transactionTimeoutMs": 60000})
    for producer, epoch in ((given["producerId"], 0), (given["producerId"], 5), (-1, 3), (7, -1)):
        t.ask({"transactionTimeoutMs": 1, "transactionalId": None, "producerId": producer,
               "producerEpoch": epoch})  # fmt: skip


# -- DescribeProducers -----------------------------------------------------------------------------


def written(t: Talk, *batches: Batch) -> Topic:
    topic = t.topic()
    for batch in batches:
        t.ask_other("Produce", None, producing(topic, batch.encode()))
    return topic


def describing(topic: str, *partitions: int) -> dict[str, Any]:
    return {"topics": [{"name": topic, "partitionIndexes": list(partitions)}]}


@case("DescribeProducers")
def producers_of_a_partition(t: Talk) -> None:
    topic = written(t, numbered(0, 3), numbered(3), Batch(records=(Record(),)))
    t.ask(describing(topic.name, 0))


@case("DescribeProducers")
def a_producer_in_a_new_epoch(t: Talk) -> None:
    topic = written(t, numbered(0, 3), numbered(0, 2, epoch=4))
    t.ask(describing(topic.name, 0))


@case("DescribeProducers")
def partitions_without_producers_and_without_a_topic(t: Talk) -> None:
    topic = t.topic()
    t.ask(describing(topic.name, 0, 9))
    t.ask(describing("no-such-topic", 0, 1))
    t.ask(describing(topic.name))
    t.ask({"topics": []})
