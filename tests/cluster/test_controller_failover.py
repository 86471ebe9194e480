"""The active controller dies, pauses or loses its majority; acknowledged changes are kept.

`--controller-kills 20` is the long run.
"""

import time
from pathlib import Path
from statistics import median

import pytest
from tests.cluster.creations import MADE, PARTITIONS, REPLICAS, Creations, create_topic

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster, NodeStuck


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--controller-kills"))


Layout = dict[str, dict[int, tuple[NodeId, ...]]]
"""Topic -> partition -> replicas."""


def layout_known_to(cluster: Cluster, node: NodeId) -> Layout:
    return {
        name: {index: tuple(one.replica_nodes) for index, one in partitions.items()}
        for name, partitions in cluster.topics(node).items()
    }


def await_agreement(cluster: Cluster, names: list[str]) -> Layout:
    """Wait until every node knows these topics and all nodes have the same layout."""

    def agreed() -> Layout | None:
        layouts = [layout_known_to(cluster, node) for node in cluster.nodes]
        is_known = all(name in layouts[0] for name in names)
        return layouts[0] if is_known and all(one == layouts[0] for one in layouts) else None

    return cluster.wait_for(agreed, f"{len(names)} topics on every node")


def assert_whole(cluster: Cluster, layout: Layout) -> None:
    """Assert that every topic has all of its partitions, and each replica its directory on disk."""
    directories = []
    for name, partitions in layout.items():
        assert sorted(partitions) == list(range(PARTITIONS)), name
        for index, replicas in partitions.items():
            assert len(replicas) == REPLICAS, f"{name}-{index}"
            directories += [cluster.data(replica) / f"{name}-{index}" for replica in replicas]
    cluster.wait_for(
        lambda: True if all(one.is_dir() for one in directories) else None,
        lambda: f"{[str(one) for one in directories if not one.is_dir()]}",
    )


def create_in_time(cluster: Cluster, name: str) -> None:
    """Create a topic; retry if the request times out because the machine is slow."""
    cluster.wait_for(
        lambda: True if create_topic(cluster, name).error_code in MADE else None, f"topic {name}"
    )


def test_what_a_killed_controller_acknowledged_exists_everywhere(
    kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = []
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        with Creations(cluster) as creations:
            for turn in range(kills):
                creations.await_more(5)
                controller = cluster.controller()
                cluster.kill(controller)
                killed_at = time.monotonic()
                probe = f"probe-{turn}"
                answer = create_topic(cluster, probe)
                seconds.append(time.monotonic() - killed_at)
                assert answer.error_code in MADE, answer
                creations.acknowledged.append(probe)
                cluster.start(controller)
            creations.await_more(5)
        layout = await_agreement(cluster, creations.acknowledged)
        assert_whole(cluster, layout)
        asked = {*creations.acknowledged, *creations.unanswered, *creations.refused}
        assert set(layout) <= asked
    with capsys.disabled():
        times = " ".join(f"{1000 * one:.0f}" for one in seconds)
        print(
            f"\n{len(creations.acknowledged)} topics acknowledged, {len(creations.unanswered)} "
            f"unanswered, {len(creations.refused)} refused over {kills} kills; "
            f"ms until a new controller answers: {times} (median {1000 * median(seconds):.0f})"
        )


def test_a_controller_that_stood_still_steps_down_and_does_no_harm(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        before = create_topic(cluster, "before")
        assert before.error_code in MADE
        old = cluster.controller()
        cluster.pause(old)
        new = cluster.controller()
        assert new != old
        while_paused = create_topic(cluster, "while-paused")
        assert while_paused.error_code in MADE
        cluster.wait_for(
            lambda: True if old not in cluster.brokers_known_to(new) else None,
            "the paused broker to be fenced",
        )
        cluster.resume(old)
        through_the_old = cluster.wait_for(
            lambda: create_topic(cluster, "through-the-old", old), "an answer of the old controller"
        )
        assert through_the_old.error_code in MADE
        layout = await_agreement(cluster, ["before", "while-paused", "through-the-old"])
        cluster.wait_for(
            lambda: True if old in cluster.brokers_known_to(new) else None,
            "the woken broker to be unfenced",
        )
        for name in layout:
            for partition in range(PARTITIONS):
                cluster.wait_for_isr(name, partition, size=REPLICAS)
        assert_whole(cluster, layout)
        cluster.wait_for(
            lambda: True if "no longer leads" in cluster.nodes[old].log_text() else None,
            "word of the old controller that it leads no longer",
        )


def test_without_a_majority_changes_are_refused_and_with_one_they_go_on(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path, properties={"request.timeout.ms": "1000"}) as cluster:
        create_in_time(cluster, "with-three")
        cluster.kill(3)
        create_in_time(cluster, "with-two")
        cluster.kill(2)
        refused = create_topic(cluster, "with-one")
        assert refused.error_code is ErrorCode.request_timed_out
        assert "majority of the controllers" in (refused.error_message or "")
        # Existing topics are still listed.
        assert {"with-three", "with-two"} <= set(cluster.topics())
        cluster.start(2)
        create_in_time(cluster, "with-two-again")
        cluster.start(3)
        layout = await_agreement(cluster, ["with-three", "with-two", "with-two-again"])
        # A request that timed out may still take effect later, so "with-one" may exist.
        assert set(layout) - {"with-one"} == {"with-three", "with-two", "with-two-again"}
        assert_whole(cluster, layout)


def test_a_cluster_killed_whole_comes_back_whole(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        names = [f"topic-{number}" for number in range(10)]
        for name in names:
            assert create_topic(cluster, name).error_code in MADE
        for node in cluster.nodes:
            cluster.kill(node)
        with pytest.raises(NodeStuck, match="no node answers"):
            cluster.topics()
        cluster.start()
        assert_whole(cluster, await_agreement(cluster, names))
        assert set(cluster.topics()) == set(names)
