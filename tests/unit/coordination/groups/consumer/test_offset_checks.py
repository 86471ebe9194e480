"""Commits of members with the consumer protocol: a stale epoch refuses the whole request."""

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    GROUP,
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import OffsetCommitRequest, OffsetCommitRequestTopic


def commit(shard: ConsumerGroupShard, member: str, epoch: int, *partitions: int) -> list[ErrorCode]:
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=(
            OffsetCommitRequestTopic(
                topic_id=None,
                name="t",
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=one, committed_offset=5, committed_metadata=""
                    )
                    for one in partitions
                ),
            ),
        ),
    )
    answer = shard.ask(request, version=9)
    return [one.error_code for topic in answer.topics for one in topic.partitions]


def test_f66_one_partition_of_another_member_refuses_the_whole_commit() -> None:
    """Kafka writes nothing of such a request, so the client never sees half a commit."""
    shard, a, b = ConsumerGroupShard(), FakeMember("A"), FakeMember("B")
    shard.put_topic("t", 2)
    shard.join(a, "t")
    shard.settle(a)
    before = a.epoch
    shard.join(b, "t")
    shard.settle(a, b)
    [kept] = next(iter(a.owned.values()))
    assert commit(shard, "A", before, kept) == [ErrorCode.none]
    written = len(shard.log.records)
    stale = ErrorCode.stale_member_epoch
    assert commit(shard, "A", before, kept, 1 - kept) == [stale, stale]
    assert len(shard.log.records) == written
