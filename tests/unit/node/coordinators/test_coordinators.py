"""A group is served only if its log was loaded completely."""

from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.sim.messages import ask, create_topic
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.disk import SimDisk

LOG = "__consumer_offsets-0/00000000000000000000.log"


def commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    return OffsetCommitRequest(group_id="readers", member_id="", topics=(topic,))


def fetched(node: Bench) -> tuple[ErrorCode, int | None]:
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=(0,))
    group = OffsetFetchRequestGroup(group_id="readers", topics=(topic,))
    [answer] = node.ask(OffsetFetchRequest(groups=(group,), require_stable=False), version=9).groups
    offsets = [one.committed_offset for of in answer.topics for one in of.partitions]
    return answer.error_code, offsets[0] if offsets else None


def started(*disks: SimDisk, seed: int = 1) -> Bench:
    return Bench(
        1,
        *disks,
        seed=seed,
        offsets_topic_num_partitions="1",
        offsets_topic_replication_factor="1",
    )


def test_a_group_whose_offsets_cannot_all_be_read_is_not_served() -> None:
    """Otherwise its consumers would start at a wrong offset: old, earliest or latest (F45)."""
    node = started()
    node.ask(create_topic("orders"))
    node.ask(ask(10, key_type=0, coordinator_keys=("readers",)))
    for offset in (5, 9):
        answer = node.ask(commit(offset), version=9)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none
    assert fetched(node) == (ErrorCode.none, 9)
    node.shutdown()
    node.settle()
    node.disk.flip_bit(LOG, 8 * (node.disk.size(LOG) - 10))

    again = started(node.disk, seed=9)

    assert fetched(again)[0] is ErrorCode.not_coordinator
