"""A member of a share group on a simulated cluster, which waits for each response."""

from typing import Any

from kio.schema.alter_share_group_offsets.v0 import request as alter
from kio.schema.describe_share_group_offsets.v1 import request as describe
from kio.schema.incremental_alter_configs.v1 import request as configs
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, create_topic
from tests.sim.talk import Talk, await_true, running

from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.sim.clients.workload import share_messages as messages
from tidelog.sim.clients.workload.share_messages import Acks, Delivered
from tidelog.sim.machines.cluster import SimCluster

TOPIC, GROUP = "work", "workers"
PARTITION = TopicPartition(TOPIC, 0)
FIND_COORDINATOR, DESCRIBE, ALTER, DELETE_GROUPS, SET_CONFIG = 10, 90, 91, 42, 44
LONG_MS = 60_000
_WAITING = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_not_available,
)


def share_cluster(seed: int, nodes: int = 3, **settings: str) -> SimCluster:
    """A cluster with one topic of one partition and the topics of both coordinators."""
    few = {
        "offsets_topic_num_partitions": "1",
        "offsets_topic_replication_factor": f"{nodes}",
        "share_coordinator_state_topic_num_partitions": "1",
        "share_coordinator_state_topic_replication_factor": f"{nodes}",
        "share_coordinator_state_topic_min_isr": f"{min(nodes, 2)}",
    }
    cluster = running(seed, nodes, **{**few, **settings})
    assert created(Talk(cluster, 1).ask(create_topic(TOPIC, 1, nodes, flush_messages="1")))
    from_the_start(cluster)
    return cluster


def from_the_start(cluster: SimCluster, **more: str) -> None:
    """Let the group begin with the first record."""
    changes = {"share.auto.offset.reset": "earliest", **more}
    resource = configs.AlterConfigsResource(
        resource_type=32,
        resource_name=GROUP,
        configs=tuple(
            configs.AlterableConfig(name=name, config_operation=0, value=value)
            for name, value in changes.items()
        ),
    )
    answer = Talk(cluster, 1).ask(ask(SET_CONFIG, resources=(resource,)))
    assert answer.responses[0].error_code is ErrorCode.none, answer


def leader_of(cluster: SimCluster, partition: TopicPartition, *gone: NodeId) -> NodeId:
    """The leader on which all running nodes agree."""
    found: list[NodeId] = []

    def is_known() -> bool:
        leaders = set()
        for host in cluster.up:
            placed = None if host.node is None else host.node.image.partition(partition)
            leaders.add(-1 if placed is None else placed.leader)
        found[:] = [leader for leader in leaders if leader >= 0 and leader not in gone]
        return len(leaders) == 1 and bool(found)

    await_true(cluster, is_known)
    return found[0]


def coordinator_of(cluster: SimCluster, *gone: NodeId) -> NodeId:
    """The share coordinator."""
    return leader_of(cluster, TopicPartition(SHARE_STATE_TOPIC, 0), *gone)


class ShareMember:
    def __init__(self, cluster: SimCluster, name: str = "a", topic: str = TOPIC) -> None:
        self.cluster = cluster
        self.topic = topic
        self.name = name
        self.epoch = 0
        self.shares: list[messages.ShareRef] = []
        self._talk: Talk | None = None
        self._session_epoch = 0

    # -- the group ---------------------------------------------------------------------------------

    def join(self) -> "ShareMember":
        """Join the group, and wait for an assignment."""
        self.epoch = 0
        while True:
            beat = messages.heartbeat(GROUP, self.name, self.epoch, [self.topic])
            answer = self.ask_coordinator(beat)
            assert answer.error_code is ErrorCode.none, answer
            self.epoch = answer.member_epoch
            shares = messages.assigned(answer)
            if shares:
                self.shares = [share for share in shares if share[1] == 0]
                return self
            self.cluster.world.run(500)

    def leave(self) -> None:
        answer = self.ask_coordinator(messages.heartbeat(GROUP, self.name, -1, [self.topic]))
        assert answer.error_code is ErrorCode.none, answer

    def alter(self, offset: int) -> None:
        partition = alter.AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=offset
        )
        topic = alter.AlterShareGroupOffsetsRequestTopic(
            topic_name=self.topic, partitions=(partition,)
        )
        answer = self.ask_coordinator(ask(ALTER, group_id=GROUP, topics=(topic,)))
        assert answer.error_code is ErrorCode.none, answer

    def delete_group(self) -> None:
        [result] = self.ask_coordinator(ask(DELETE_GROUPS, groups_names=(GROUP,))).results
        assert result.error_code is ErrorCode.none

    def start(self) -> int:
        """The stored start of the share partition."""
        asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
        [group] = self.ask_coordinator(ask(DESCRIBE, groups=(asked,))).groups
        offset: int = group.topics[0].partitions[0].start_offset
        return offset

    def ask_coordinator(self, message: Any) -> Any:
        for _ in range(400):
            up = next(host.id for host in self.cluster.up)
            wish = ask(FIND_COORDINATOR, key_type=0, coordinator_keys=(GROUP,))
            found = Talk(self.cluster, up, patience_ms=LONG_MS).ask(wish)
            if found is not None and found.coordinators[0].error_code is ErrorCode.none:
                node = found.coordinators[0].node_id
                answer = Talk(self.cluster, node, patience_ms=LONG_MS).ask(message)
                waits = any(f"ErrorCode.{error.name}" in repr(answer) for error in _WAITING)
                if answer is not None and not waits:
                    return answer
            self.cluster.world.run(100)
        raise AssertionError("the group coordinator is not available")

    # -- records -----------------------------------------------------------------------------------

    def connect(self) -> Talk:
        """Connect to the leader, and begin a share session with the next fetch."""
        self._session_epoch = 0
        node = leader_of(self.cluster, TopicPartition(self.topic, 0))
        self._talk = Talk(self.cluster, node, patience_ms=LONG_MS)
        return self._talk

    @property
    def talk(self) -> Talk:
        return self._talk or self.connect()

    def fetch(self, most: int = 500, wait_ms: int = 500) -> list[Delivered]:
        talk = self.talk
        answer = talk.ask(self.fetching(most, wait_ms))
        assert answer is not None
        assert answer.error_code is ErrorCode.none, answer
        errors = set(messages.errors_of(answer).values())
        assert errors <= {ErrorCode.none}, answer
        return messages.delivered(answer)

    def fetching(self, most: int = 500, wait_ms: int = 500, acks: Acks | None = None) -> Any:
        """The next fetch of the session."""
        epoch, self._session_epoch = self._session_epoch, self._session_epoch + 1
        shares = self.shares if epoch == 0 else []
        return messages.share_fetch(
            GROUP, self.name, epoch, shares, acks, most=most, wait_ms=wait_ms
        )

    def fetched(self, tries: int = 60, most: int = 500) -> list[Delivered]:
        """The first records that arrive."""
        for _ in range(tries):
            if found := self.fetch(most):
                return found
        raise AssertionError("no records were delivered")

    def acknowledge(self, records: list[Delivered], kind: int = messages.ACCEPT) -> ErrorCode:
        answer = self.talk.ask(self.acknowledging(records, kind))
        assert answer is not None
        assert answer.error_code is ErrorCode.none, answer
        [error] = messages.errors_of(answer).values()
        return error

    def acknowledging(self, records: list[Delivered], kind: int = messages.ACCEPT) -> Any:
        epoch, self._session_epoch = self._session_epoch, self._session_epoch + 1
        return messages.share_acknowledge(GROUP, self.name, epoch, acks_of(records, kind))

    def close_session(self) -> None:
        answer = self.talk.ask(messages.share_fetch(GROUP, self.name, -1, []))
        assert answer.error_code is ErrorCode.none, answer
        self._session_epoch = 0


def acks_of(records: list[Delivered], kind: int = messages.ACCEPT) -> Acks:
    return {records[0].share: [(one.first, one.last, kind) for one in records]}


def offsets_of(records: list[Delivered]) -> list[int]:
    return [offset for one in records for offset in range(one.first, one.last + 1)]
