"""A coordinator dies: what was committed stays, and every member learns how to go on."""

from typing import Any

from tests.sim.cluster_steps import created
from tests.sim.messages import create_topic
from tests.sim.talk import Asked, Talk, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.machines.cluster import SimCluster

GROUP = "readers"
PARTITION = TopicPartition("orders", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
LONG_MS = 30_000


def with_a_group_topic(seed: int) -> SimCluster:
    settings = {
        "offsets_topic_num_partitions": "1",
        "offsets_topic_replication_factor": "3",
        "group_initial_rebalance_delay_ms": "200",
    }
    cluster = running(seed, **settings)
    talk = Talk(cluster, 1)
    assert created(talk.ask(create_topic(PARTITION.topic, 1, 3)))
    talk.ask(messages.find_coordinator(GROUP))
    await_true(cluster, lambda: coordinator_of(cluster) is not None)
    return cluster


def coordinator_of(cluster: SimCluster, *gone: NodeId) -> NodeId | None:
    """The leader of the group's partition, if all running nodes agree on it."""
    leaders = set()
    for host in cluster.up:
        placed = None if host.node is None else host.node.image.partition(OFFSETS)
        leaders.add(-1 if placed is None else placed.leader)
    leader = leaders.pop() if len(leaders) == 1 else -1
    return leader if leader >= 0 and leader not in gone else None


def new_coordinator(cluster: SimCluster, *gone: NodeId) -> NodeId:
    await_true(cluster, lambda: coordinator_of(cluster, *gone) is not None)
    found = coordinator_of(cluster, *gone)
    assert found is not None
    return found


def asked(cluster: SimCluster, node: NodeId, message: Any, version: int | None = None) -> Any:
    """The first response that does not tell the client to wait for the coordinator."""
    waiting = (
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
    )
    for _ in range(400):
        answer = Talk(cluster, node, patience_ms=LONG_MS).ask(message, version)
        errors = repr(answer)
        if not any(f"ErrorCode.{error.name}" in errors for error in waiting):
            return answer
        cluster.world.run(50)
    raise AssertionError(f"the coordinator on node {node} is not available: {answer}")


def fetched(cluster: SimCluster, node: NodeId) -> int:
    answer = asked(cluster, node, messages.fetch_offsets(GROUP, [PARTITION]), messages.BY_NAME)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def commit(offset: int) -> Any:
    return messages.commit(GROUP, -1, "", {PARTITION: offset})


def is_acknowledged(asked: Asked) -> bool:
    if asked.answer is None:
        return False
    return asked.answer.topics[0].partitions[0].error_code is ErrorCode.none


def test_f66_no_acknowledged_commit_is_lost_when_the_coordinator_dies() -> None:
    for seed in range(6):
        cluster = with_a_group_topic(seed)
        old = new_coordinator(cluster)
        assert fetched(cluster, old) == -1
        talk = Talk(cluster, old, patience_ms=LONG_MS)
        commits = []
        for offset in range(1, 30):
            commits.append((offset, talk.begin(commit(offset), messages.BY_NAME)))
            cluster.world.run(cluster.world.dice.below(6))
        cluster.hosts[old].kill()
        new = new_coordinator(cluster, old)
        promised = max((offset for offset, one in commits if is_acknowledged(one)), default=-1)
        after = fetched(cluster, new)
        assert promised <= after <= 29
        cluster.hosts[old].start()
        await_true(cluster, lambda cluster=cluster: cluster.is_ready)
        assert fetched(cluster, new_coordinator(cluster)) >= after, "an offset that was read stays"


def test_f68_a_read_that_was_answered_is_still_true_after_a_failover() -> None:
    """A commit that no follower has must not be read, even by its own coordinator."""
    for seed in range(3):
        cluster = with_a_group_topic(seed)
        old = new_coordinator(cluster)
        talk = Talk(cluster, old, patience_ms=LONG_MS)
        assert is_acknowledged(_done(cluster, talk.begin(commit(5), messages.BY_NAME)))
        for other in cluster.hosts.values():
            if other.id != old:
                cluster.network.cut(cluster.hosts[old].name, other.name)
        late = talk.begin(commit(7), messages.BY_NAME)
        read = Talk(cluster, old, patience_ms=LONG_MS).begin(
            messages.fetch_offsets(GROUP, [PARTITION]), messages.BY_NAME
        )
        cluster.world.run(2_000)
        assert not is_acknowledged(late)
        assert not read.is_done or read.answer is None or _offset(read) != 7
        cluster.hosts[old].kill()
        assert fetched(cluster, new_coordinator(cluster, old)) == 5


def _done(cluster: SimCluster, asked: Asked) -> Asked:
    await_true(cluster, lambda: asked.is_done)
    return asked


def _offset(read: Asked) -> int | None:
    topics = read.answer.groups[0].topics
    return topics[0].partitions[0].committed_offset if topics else None


def joined(cluster: SimCluster, node: NodeId, members: list[str]) -> dict[str, Any]:
    """Let all members join together; returns the response to each."""
    topics = [PARTITION.topic]
    begun = [
        (
            member,
            Talk(cluster, node, patience_ms=LONG_MS).begin(messages.join(GROUP, member, topics)),
        )
        for member in members
    ]
    await_true(cluster, lambda: all(one.is_done for _, one in begun))
    return {one.answer.member_id: one.answer for _, one in begun}


def stable_group(cluster: SimCluster, node: NodeId) -> tuple[list[str], int]:
    topics = [PARTITION.topic]
    members = [asked(cluster, node, messages.join(GROUP, "", topics)).member_id for _ in range(2)]
    answers = joined(cluster, node, members)
    assert {one.error_code for one in answers.values()} == {ErrorCode.none}
    generation = next(iter(answers.values())).generation_id
    leader = next(iter(answers.values())).leader
    shares = {member: [PARTITION] if member == leader else [] for member in members}
    for member in sorted(members, key=lambda one: one != leader):
        sync = messages.sync(GROUP, generation, member, shares if member == leader else {})
        assert asked(cluster, node, sync).error_code is ErrorCode.none
    return members, generation


def test_f69_a_stable_group_goes_on_after_a_failover_without_a_rebalance() -> None:
    cluster = with_a_group_topic(seed=1)
    old = new_coordinator(cluster)
    members, generation = stable_group(cluster, old)
    cluster.hosts[old].kill()
    new = new_coordinator(cluster, old)
    for member in members:
        beat = asked(cluster, new, messages.heartbeat(GROUP, generation, member))
        assert beat.error_code is ErrorCode.none
        mine = asked(cluster, new, messages.sync(GROUP, generation, member, {}))
        assert mine.error_code is ErrorCode.none


def test_f69_a_rebalance_that_dies_with_its_coordinator_is_begun_again_and_ends() -> None:
    cluster = with_a_group_topic(seed=2)
    old = new_coordinator(cluster)
    members, generation = stable_group(cluster, old)
    topics = [PARTITION.topic]
    parked = Talk(cluster, old, patience_ms=LONG_MS).begin(messages.join(GROUP, members[0], topics))
    cluster.world.run(50)
    assert not parked.is_done
    cluster.hosts[old].kill()
    new = new_coordinator(cluster, old)
    assert parked.answer is None
    again = Talk(cluster, new, patience_ms=LONG_MS)
    first = asked(cluster, new, messages.heartbeat(GROUP, generation, members[1]))
    assert first.error_code is ErrorCode.none, "the new coordinator has the last stored generation"
    parked = again.begin(messages.join(GROUP, members[0], topics))
    cluster.world.run(50)
    beat = asked(cluster, new, messages.heartbeat(GROUP, generation, members[1]))
    assert beat.error_code is ErrorCode.rebalance_in_progress, "the other member is told"
    other = asked(cluster, new, messages.join(GROUP, members[1], topics))
    await_true(cluster, lambda: parked.is_done)
    assert parked.answer.generation_id == other.generation_id == generation + 1
