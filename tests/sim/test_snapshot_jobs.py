"""A job writes metadata snapshots, and a crash during the job does not damage the log."""

import pytest
from tests.sim.cluster_steps import created
from tests.sim.messages import create_topic
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.node.metadata.snapshot_files import DIRECTORY, WriteSnapshot
from tidelog.sim.machines.host import SimHost


def snapshots_of(host: SimHost) -> list[str]:
    return [name for name in host.disk.list(DIRECTORY) if name.endswith(".checkpoint")]


@pytest.mark.parametrize("kind", ["kill", "lose_power"])
def test_a_node_that_dies_while_it_writes_a_snapshot_loses_nothing(kind: str) -> None:
    for seed in range(2):
        cluster = running(
            seed,
            nodes=1,
            metadata_log_max_record_bytes_between_snapshots="3000",
            metadata_max_retention_bytes="4000",
        )
        host, talk = cluster.hosts[1], Talk(cluster, 1)
        names: list[str] = []
        crashes = 0
        while crashes < 2:
            names.append(f"t{len(names)}")
            assert created(talk.ask(create_topic(names[-1], 5)))
            if len(names) % 10 or not host.jobs.count(WriteSnapshot):
                continue
            cluster.world.run(cluster.world.dice.below(8))
            getattr(host, kind)()
            assert len(host.jobs) == 0
            cluster.world.run(3_000)
            host.start()
            await_ready(cluster)
            talk = Talk(cluster, 1)
            crashes += 1
            assert set(names) <= set(host.node.image.topics)
        await_true(cluster, lambda host=host: not host.jobs.count(WriteSnapshot))
        assert len(snapshots_of(host)) in (1, 2)
