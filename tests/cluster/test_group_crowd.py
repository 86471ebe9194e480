"""Two hundred members join and leave one group at once, while its coordinators are killed."""

import re
import time
from pathlib import Path

import pytest
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from tests.cluster.coordinators import coordinator_of
from tests.cluster.group_crowd import Crowd

from tidelog.clusters.free_ports import HOST
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

MEMBERS = 200
GROUP = "crowd"
PROPERTIES = {"offsets.topic.replication.factor": "3", "broker.session.timeout.ms": "6000"}


def longest_freeze_ms(cluster: Cluster, node: NodeId) -> int:
    delays = re.findall(
        r"pass of the loop took (\d+) ms \((\d+) ms of CPU\)", cluster.nodes[node].log_text()
    )
    return max((int(cpu) for _, cpu in delays), default=0)


def test_two_hundred_members_come_and_go_through_the_deaths_of_their_coordinators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report: list[str] = []
    with Cluster(directory=tmp_path, properties=PROPERTIES, network_faults=False) as cluster:
        coordinator_of(cluster, GROUP)
        brokers = [(HOST, cluster.port(node)) for node in cluster.nodes]
        with Crowd(GROUP, brokers) as crowd:

            def await_stable(what: str) -> None:
                began = time.monotonic()
                cluster.wait_for(
                    lambda: (crowd.is_stable(began) and is_described(cluster, crowd)) or None,
                    lambda: f"a stable group after {what}: {progress(crowd)}",
                    timeout=300,
                )
                report.append(f"{what}: stable after {time.monotonic() - began:.1f} s")

            crowd.join(MEMBERS)
            await_stable(f"{MEMBERS} joined at once")
            killed = coordinator_of(cluster, GROUP)
            cluster.kill(killed)
            await_stable("the coordinator was killed")
            cluster.start(killed)
            crowd.leave(MEMBERS // 2)
            await_stable("half of them left at once")
            killed = coordinator_of(cluster, GROUP)
            crowd.join(MEMBERS // 2)
            cluster.kill(killed)
            await_stable("as many joined at once and the coordinator was killed meanwhile")
            cluster.start(killed)
            killed = coordinator_of(cluster, GROUP)
            crowd.leave(MEMBERS // 2)
            crowd.join(MEMBERS // 2)
            cluster.kill(killed)
            await_stable("half left, as many joined, and the coordinator was killed meanwhile")
            cluster.start(killed)
        freezes = {node: longest_freeze_ms(cluster, node) for node in cluster.nodes}
    with capsys.disabled():
        print("", *report, f"longest freeze by node, ms of CPU: {freezes}", sep="\n  ", end="")


def is_described(cluster: Cluster, crowd: Crowd) -> bool:
    """Whether the coordinator lists exactly the remaining members."""
    request = DescribeGroupsRequest(groups=(GROUP,), include_authorized_operations=False)
    node = coordinator_of(cluster, GROUP)
    [group] = cluster.ask(request, DescribeGroupsResponse, node).groups
    known = {member.member_id for member in group.members}
    return group.group_state == "Stable" and known == {one.member_id for one in crowd.staying}


def progress(crowd: Crowd) -> str:
    generations: dict[int, int] = {}
    for one in crowd.staying:
        generations[one.generation] = generations.get(one.generation, 0) + 1
    gone = sum(not one.has_left for one in crowd.members if one.leaving.is_set())
    return f"members by generation {generations}, {gone} still to leave"
