"""InitProducerId, whose ids come from blocks of the controller, and DescribeProducers."""

from datetime import timedelta

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.describe_producers.v0.request import TopicRequest
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.records import producers
from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.model.effects import ActiveProducer, ChangeMetadata, DescribeProducers, ProducersFound
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

MINUTE = timedelta(minutes=1)


def block(start: int, length: int = 1000, error: ErrorCode = ErrorCode.none):
    return AllocateProducerIdsResponse(
        throttle_time=timedelta(0),
        error_code=error,
        producer_id_start=start,
        producer_id_len=length,
    )


def init(blocks: ProducerIdBlocks, **fields):
    message = ask(22, **{"transactional_id": None, "transaction_timeout": MINUTE, **fields})
    return producers.init_producer_id(request(message, 5, producer_ids=blocks))


def test_the_first_id_needs_a_block():
    effects = Effects(block(3000))

    response = effects.drive(init(ProducerIdBlocks()))

    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 3000, 0)
    assert effects.asked == [
        ChangeMetadata(AllocateProducerIdsRequest(broker_id=1, broker_epoch=101))
    ]


def test_no_id_leaves_twice():
    blocks = ProducerIdBlocks()
    first = [drive(init(blocks), block(0, 2)).producer_id, drive(init(blocks)).producer_id]
    second = drive(init(blocks), block(7000)).producer_id

    assert [*first, second] == [0, 1, 7000]


def test_two_producers_that_wait_for_a_block_both_get_theirs():
    blocks = ProducerIdBlocks()
    one, other = init(blocks), init(blocks)
    one.send(None)
    other.send(None)

    with pytest.raises(StopIteration) as first:
        one.send(block(0, 2))
    with pytest.raises(StopIteration) as second:
        other.send(block(1000, 2))

    assert (first.value.value.producer_id, second.value.value.producer_id) == (0, 1)
    assert [blocks.take() for _ in range(3)] == [1000, 1001, None]


def test_a_block_that_cannot_be_had_yet():
    response = drive(init(ProducerIdBlocks()), block(0, 0, ErrorCode.stale_broker_epoch))

    assert response.error_code is ErrorCode.coordinator_load_in_progress
    assert (response.producer_id, response.producer_epoch) == (-1, -1)


def test_an_old_id_and_epoch_are_replaced():
    response = drive(init(ProducerIdBlocks(), producer_id=5, producer_epoch=1), block(9))

    assert (response.producer_id, response.producer_epoch) == (9, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.invalid_request),
        ({"producer_epoch": 5}, ErrorCode.invalid_request),
        ({"transactional_id": ""}, ErrorCode.invalid_request),
        (
            {"transactional_id": "t", "transaction_timeout": timedelta(days=1)},
            ErrorCode.invalid_transaction_timeout,
        ),
        (
            {"transactional_id": "t", "transaction_timeout": timedelta(0)},
            ErrorCode.invalid_transaction_timeout,
        ),
        ({"transactional_id": "t"}, ErrorCode.coordinator_not_available),
    ],
)
def test_refusals(fields, error: ErrorCode):
    response = drive(init(ProducerIdBlocks(), **fields))

    assert (response.error_code, response.producer_id) == (error, -1)


def test_producers_are_described_partition_by_partition():
    known = ActiveProducer(4000, 2, 17, 1_700_000_000_000, -1, -1)
    effects = Effects(
        [ProducersFound(ErrorCode.none, (known,))],
        [ProducersFound(ErrorCode.not_leader_or_follower)],
        [ProducersFound(ErrorCode.unknown_topic_or_partition)],
    )
    topics = (
        TopicRequest(name="orders", partition_indexes=(0, 2)),
        TopicRequest(name="none", partition_indexes=()),
        TopicRequest(name="lost", partition_indexes=(1,)),
    )

    response = effects.drive(producers.describe_producers(request(ask(61, topics=topics), 0)))

    assert effects.asked == [
        DescribeProducers([TopicPartition("orders", 0)]),
        DescribeProducers([TopicPartition("orders", 2)]),
        DescribeProducers([TopicPartition("lost", 1)]),
    ]
    orders, none, lost = response.topics
    assert [part.error_code for part in orders.partitions] == [0, 6]
    [described] = orders.partitions[0].active_producers
    assert (described.producer_id, described.producer_epoch) == (4000, 2)
    assert (described.last_sequence, described.current_txn_start_offset) == (17, -1)
    assert none.partitions == ()
    assert [(part.partition_index, part.error_code) for part in lost.partitions] == [(1, 3)]
