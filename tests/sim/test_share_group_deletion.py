"""A share group that is deleted takes its state in the share coordinator with it."""

from typing import Any

from kio.schema.alter_share_group_offsets.v0 import request as alter
from kio.schema.describe_share_group_offsets.v1 import request as describe
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, produce_to
from tests.sim.talk import Talk, running

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId

TOPIC, GROUP, MEMBER = "work", "workers", "AAAAAAAAAAAAAAAAAAAAAA"
FIND_COORDINATOR, HEARTBEAT, DESCRIBE, ALTER, DELETE_GROUPS = 10, 76, 90, 91, 42
ALTERED = 2


class ShareGroup:
    """One member of a share group, and its administration."""

    def __init__(self, seed: int) -> None:
        self.cluster = running(seed)
        first = Talk(self.cluster, 1)
        assert created(first.ask(create_topic(TOPIC, on=[(1, 2, 3)])))
        for number in range(5):
            first.ask(produce_to(TOPIC, batch(b"%d" % number)))
        self.talk = Talk(self.cluster, self._coordinator(first))

    def _coordinator(self, talk: Talk) -> NodeId:
        asked = ask(FIND_COORDINATOR, key_type=0, coordinator_keys=(GROUP,))
        while True:
            [found] = talk.ask(asked).coordinators
            if found.error_code is ErrorCode.none:
                node: NodeId = found.node_id
                return node
            self.cluster.world.run_until(lambda: False, 100)

    def join(self) -> None:
        epoch = self._beat(0).member_epoch
        while self.start() is None:
            self.cluster.world.run_until(lambda: False, 500)
            epoch = self._beat(epoch).member_epoch

    def leave(self) -> None:
        assert self._beat(-1).error_code is ErrorCode.none

    def _beat(self, epoch: int) -> Any:
        return self.talk.ask(
            ask(
                HEARTBEAT,
                group_id=GROUP,
                member_id=MEMBER,
                member_epoch=epoch,
                subscribed_topic_names=(TOPIC,),
            )
        )

    def start(self) -> int | None:
        """The stored start of the share partition; None if it is not stored yet."""
        asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
        [group] = self.talk.ask(ask(DESCRIBE, groups=(asked,))).groups
        for topic in group.topics:
            offset: int = topic.partitions[0].start_offset
            return offset
        return None

    def alter(self, offset: int) -> None:
        partition = alter.AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=offset
        )
        topic = alter.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=(partition,))
        answer = self.talk.ask(ask(ALTER, group_id=GROUP, topics=(topic,)))
        assert answer.error_code is ErrorCode.none

    def delete(self) -> ErrorCode:
        [result] = self.talk.ask(ask(DELETE_GROUPS, groups_names=(GROUP,))).results
        error: ErrorCode = result.error_code
        return error


def test_a_group_of_the_same_name_does_not_continue_where_a_deleted_one_ended(seed: int) -> None:
    group = ShareGroup(seed)
    group.join()
    group.leave()
    group.alter(ALTERED)
    assert group.start() == ALTERED

    assert group.delete() is ErrorCode.none
    assert group.start() is None
    group.join()

    assert group.start() != ALTERED


def test_a_share_group_with_members_is_not_deleted(seed: int) -> None:
    group = ShareGroup(seed)
    group.join()

    assert group.delete() is ErrorCode.non_empty_group
    assert group.start() is not None
