"""Records that a share group gets, across sessions, altered offsets and failovers."""

import pytest
from tests.sim.messages import batch, produce_to
from tests.sim.share_member import (
    PARTITION,
    TOPIC,
    ShareMember,
    acks_of,
    coordinator_of,
    leader_of,
    offsets_of,
    share_cluster,
)
from tests.sim.talk import Talk, await_true

from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC
from tidelog.model.errors import ErrorCode
from tidelog.model.events import Event, FrameReceived, Ran
from tidelog.model.ids import Millis, NodeId, TopicPartition
from tidelog.model.outbound import Outbound
from tidelog.node.inspection import NodeInspection
from tidelog.node.node import Node
from tidelog.sim.clients.workload.share_messages import RELEASE
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

RECORDS = 10


def written(cluster: SimCluster, count: int = RECORDS) -> None:
    """Write records, one batch each."""
    talk = Talk(cluster, leader_of(cluster, PARTITION))
    for number in range(count):
        answer = talk.ask(produce_to(TOPIC, batch(b"%d" % number), acks=-1))
        assert answer.topics[0][1][0].error is ErrorCode.none


@pytest.fixture
def cluster(seed: int) -> SimCluster:
    cluster = share_cluster(seed)
    written(cluster)
    return cluster


def test_an_altered_offset_counts_for_the_next_session(cluster: SimCluster) -> None:
    """The leader must not go on with the state that it knew before."""
    member = ShareMember(cluster).join()
    assert member.acknowledge(member.fetched(most=3)) is ErrorCode.none
    member.close_session()
    member.leave()

    member.alter(1)
    member.join()

    assert offsets_of(member.fetched())[0] == 1


def test_a_group_that_is_created_again_begins_anew(cluster: SimCluster) -> None:
    member = ShareMember(cluster).join()
    assert member.acknowledge(member.fetched(most=3)) is ErrorCode.none
    member.close_session()
    member.leave()

    member.delete_group()
    member.join()

    assert offsets_of(member.fetched())[0] == 0


def test_records_of_a_session_that_ends_are_delivered_to_the_next(cluster: SimCluster) -> None:
    first = ShareMember(cluster, "a").join()
    held = first.fetched()
    first.close_session()

    second = ShareMember(cluster, "b").join()
    again = second.fetched()

    assert offsets_of(again) == offsets_of(held)
    assert {one.delivery_count for one in again} == {1}, "the records were not processed"


def test_a_member_whose_connection_is_lost_holds_nothing(cluster: SimCluster) -> None:
    """Its fetch waits for the write of its acknowledgements, and must acquire nothing after it."""
    dead, alive = ShareMember(cluster, "a").join(), ShareMember(cluster, "b").join()
    taken = dead.fetched(most=1)
    assert offsets_of(taken) == [0]
    alive.connect()
    dead.talk.begin(dead.fetching(acks=acks_of(taken, RELEASE)))
    cluster.world.run(3)
    dead.talk.close()

    got = offsets_of(alive.fetched())
    while len(got) < RECORDS:
        got += offsets_of(alive.fetched(tries=8))
    assert sorted(got) == list(range(RECORDS))


@pytest.mark.parametrize("dies", ["leader", "coordinator"])
def test_f70_an_accepted_record_is_not_delivered_again(cluster: SimCluster, dies: str) -> None:
    member = ShareMember(cluster).join()
    accepted = member.fetched(most=4)
    assert member.acknowledge(accepted) is ErrorCode.none
    held = member.fetched(most=2)
    node = leader_of(cluster, PARTITION) if dies == "leader" else coordinator_of(cluster)

    cluster.hosts[node].kill()
    other = ShareMember(cluster, "b")
    leader_of(cluster, PARTITION, node)
    coordinator_of(cluster, node)
    other.join()
    got: list[int] = []
    for _ in range(90):  # until the locks of the first member have expired
        found = other.fetch()
        if found:
            assert other.acknowledge(found) is ErrorCode.none
        got += offsets_of(found)
        if len(got) >= RECORDS - len(offsets_of(accepted)):
            break
    assert sorted(got) == [o for o in range(RECORDS) if o not in offsets_of(accepted)]
    assert set(offsets_of(held)) <= set(got)


def test_f94_a_share_fetch_does_not_wait_for_the_disk(seed: int) -> None:
    cluster = share_cluster(seed, nodes=1)
    written(cluster)
    member = ShareMember(cluster).join()
    assert not member.fetch(most=0, wait_ms=0)
    await_true(cluster, lambda: not any(len(host.jobs) for host in cluster.up))
    host = cluster.hosts[1]
    host.disk.evict_all()
    before, waits = host.disk.pages_loaded, DiskWaits(host)

    assert offsets_of(member.fetched())
    assert host.disk.pages_loaded > before
    assert waits.pages == 0


def test_records_of_the_share_coordinator_that_are_not_needed_are_removed(seed: int) -> None:
    cluster = share_cluster(
        seed,
        share_coordinator_snapshot_update_records_per_snapshot="3",
        share_coordinator_state_topic_prune_interval_ms="2000",
    )
    written(cluster)
    member = ShareMember(cluster).join()
    for _ in range(RECORDS - 1):
        assert member.acknowledge(member.fetched(most=1)) is ErrorCode.none
    cluster.world.run(5_000)
    node = coordinator_of(cluster)
    starts = [_log_start(cluster, host.id) for host in cluster.up]
    assert len(set(starts)) == 1
    assert starts[0] > 0

    cluster.hosts[node].kill()
    coordinator_of(cluster, node)
    member.connect()

    assert offsets_of(member.fetched()) == [RECORDS - 1]


def _log_start(cluster: SimCluster, node: NodeId) -> int:
    live = cluster.hosts[node].node
    assert live is not None
    replica = NodeInspection(live).replica(TopicPartition(SHARE_STATE_TOPIC, 0))
    assert replica is not None
    return replica.log.log_start_offset


class DiskWaits:
    """Counts the pages that a node loads while it handles requests and ends of jobs."""

    def __init__(self, host: SimHost) -> None:
        self.pages = 0
        self._host = host
        host.handle = self._handle

    def _handle(self, node: Node, event: Event, now: Millis) -> list[Outbound]:
        before = self._host.disk.pages_loaded
        outbound = Node.handle(node, event, now)
        if isinstance(event, FrameReceived | Ran):
            self.pages += self._host.disk.pages_loaded - before
        return outbound
