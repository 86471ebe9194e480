"""Leaders, followers and controllers pause, shut down or die, and another node takes over.

No acknowledged record is lost or duplicated, and a resumed node causes no harm. The tests print
how long each takeover took. The limits allow for a busy machine, but are below Kafka's session of
9 s.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.audit import compare_replicas, count_all
from tests.cluster.stream import Stream

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

SESSION_MS = 2_000
"""The broker session timeout that `tidelog up` sets."""
ASLEEP_SECONDS = 10.0
"""How long a node is paused: much longer than the session, so that another node takes over."""
FEW = 200

TAKEOVER_MS = SESSION_MS + 500
"""The longest time until another broker leads the partition of a paused leader."""
SHUTDOWN_MS = 100
"""The longest interruption by a controlled shutdown, not counting the client's back-off."""
STALL_MS = 500
"""The longest interruption of writes when a follower dies."""
SLACK_MS = 4_000
"""Additional time for a busy machine."""

Report = Callable[[str], None]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    def say(sentence: str) -> None:
        with capsys.disabled():
            print(f"\n  {sentence}", end="")

    return say


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        cluster.create_topic("t", 1, 3, min_insync_replicas=2)
        yield cluster


def check(cluster: Cluster, stream: Stream) -> str:
    """Assert that every record is at its acknowledged offset on every replica."""
    cluster.wait_for_isr(stream.topic, 0, set(cluster.nodes))
    count = count_all(cluster, stream)
    compare_replicas(cluster, stream.topic, stream.sent)
    assert not stream.failed
    assert not stream.strays
    assert count.is_clean, count
    return f"acknowledged {count.acknowledged:,}, lost {count.lost}, duplicated {count.duplicated}"


def ms_until_other(before: NodeId, now: Callable[[], NodeId], cluster: Cluster) -> float:
    began = time.monotonic()
    cluster.wait_for(lambda: True if now() != before else None, "another to take over")
    return 1000 * (time.monotonic() - began)


@pytest.mark.parametrize("also_controls", [False, True], ids=["a leader", "leader and controller"])
def test_another_leads_while_the_leader_stands_still(
    cluster: Cluster, report: Report, also_controls: bool
) -> None:
    controller = cluster.controller()
    leader = controller if also_controls else next(n for n in cluster.nodes if n != controller)
    cluster.create_topic("led", assignment=[[leader, *(n for n in cluster.nodes if n != leader)]])
    # By default librdkafka waits a minute for the answer of a silent broker.
    with Stream(cluster.bootstrap, "led", in_flight=FEW, socket_timeout_ms=1000) as stream:
        stream.await_acks(FEW)
        asleep_until = time.monotonic() + ASLEEP_SECONDS
        cluster.pause(leader)
        took = ms_until_other(leader, lambda: cluster.leader_of("led"), cluster)
        stream.await_acks(FEW)
        time.sleep(max(0.0, asleep_until - time.monotonic()))
        stream.await_acks(FEW)
        cluster.resume(leader)
        cluster.wait_for_isr("led", 0, set(cluster.nodes))
        stream.await_acks(FEW)
    counted = check(cluster, stream)
    who = "leader that is also the controller" if also_controls else "leader"
    report(
        f"{who} stopped for {ASLEEP_SECONDS:.0f} s: another led after {took:.0f} ms (session "
        f"{SESSION_MS}), longest wait for an acknowledgement {stream.longest_gap:.1f} s; {counted}"
    )
    assert took < TAKEOVER_MS + SLACK_MS


def test_another_controls_while_the_controller_stands_still(
    cluster: Cluster, report: Report
) -> None:
    with Stream(cluster.bootstrap, "t", in_flight=FEW, socket_timeout_ms=1000) as stream:
        stream.await_acks(FEW)
        controller = cluster.controller()
        asleep_until = time.monotonic() + ASLEEP_SECONDS
        cluster.pause(controller)
        took = ms_until_other(controller, cluster.controller, cluster)
        cluster.create_topic(
            "made-meanwhile", assignment=[sorted(set(cluster.nodes) - {controller})]
        )
        stream.await_acks(FEW)
        time.sleep(max(0.0, asleep_until - time.monotonic()))
        cluster.resume(controller)
        cluster.wait_for_isr("t", 0, set(cluster.nodes))
        cluster.wait_for(
            lambda: True if "made-meanwhile" in cluster.topics(controller) else None,
            "the one who woke up to learn what was decided",
        )
        # Check the log of the old controller, because that node may already be elected again.
        cluster.wait_for(
            lambda: True if "no longer leads" in cluster.nodes[controller].log_text() else None,
            "word of the old controller that it leads no longer",
        )
        stream.await_acks(FEW)
    counted = check(cluster, stream)
    report(
        f"controller stopped for {ASLEEP_SECONDS:.0f} s: another after {took:.0f} ms, longest wait "
        f"for an acknowledgement {stream.longest_gap:.1f} s; {counted}"
    )


@pytest.mark.parametrize("backoff_ms", [100, 1], ids=["default back-off", "no back-off"])
def test_a_controlled_shutdown_hardly_interrupts_writers(
    cluster: Cluster, report: Report, backoff_ms: int
) -> None:
    """The client itself waits 100 ms by default before it asks the new leader."""
    with Stream(cluster.bootstrap, "t", in_flight=FEW, retry_backoff_ms=backoff_ms) as stream:
        stream.await_acks(FEW)
        leader = cluster.leader_of("t")
        stream.forget_gaps()
        assert cluster.stop(leader) == 0
        stream.await_acks(FEW)
        gap = stream.longest_gap
        cluster.start(leader)
        stream.await_acks(FEW)
    report(
        f"controlled shutdown of the leader, client with a back-off of {backoff_ms} ms: "
        f"acknowledgements {1000 * gap:.0f} ms apart at most"
    )
    assert 1000 * gap < SHUTDOWN_MS + backoff_ms + SLACK_MS
    report(check(cluster, stream))


def test_a_killed_follower_hardly_interrupts_writers(cluster: Cluster, report: Report) -> None:
    with Stream(cluster.bootstrap, "t", in_flight=FEW) as stream:
        stream.await_acks(FEW)
        busy = {cluster.leader_of("t"), cluster.controller()}
        follower = next(node for node in cluster.nodes if node not in busy)
        stream.forget_gaps()
        cluster.kill(follower)
        cluster.wait_for_isr("t", 0, set(cluster.nodes) - {follower})
        stream.await_acks(FEW)
        gap = stream.longest_gap
        started = time.monotonic()
        cluster.start(follower)
        cluster.wait_for_isr("t", 0, set(cluster.nodes))
        back = time.monotonic() - started
    report(
        f"kill -9 of a follower: acknowledgements {1000 * gap:.0f} ms apart at most; "
        f"back in the ISR {back:.1f} s after its start"
    )
    assert 1000 * gap < STALL_MS + SLACK_MS
    report(check(cluster, stream))
