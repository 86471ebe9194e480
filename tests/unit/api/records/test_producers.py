"""DescribeProducers."""

from kio.schema.describe_producers.v0.request import TopicRequest
from tests.unit.api.support import Effects, ask, request

from tidelog.api.records import producers
from tidelog.model.effects import ActiveProducer, DescribeProducers, ProducersFound
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition


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
