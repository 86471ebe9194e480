"""The same seed gives the same trace: in one process, and under any PYTHONHASHSEED."""

import os
import subprocess
import sys
from pathlib import Path

from tests.sim.messages import batch, create_topic, produce_to
from tests.sim.talk import Talk, await_ready, running

ROOT = Path(__file__).parents[2]


def eventful_trace(seed: int) -> str:
    """Topics, records, a kill, a power loss, a partition, a pause: then the hash of it all."""
    cluster = running(seed)
    world, network = cluster.world, cluster.network
    for number in range(3):
        Talk(cluster, 1 + number).ask(create_topic(f"topic-{number}", 2, 3))
    talk = Talk(cluster, 1)
    for number in range(5):
        talk.begin(produce_to("topic-0", {0: batch(b"%d" % number), 1: batch(b"x")}))
    cluster.controllers[0].kill()
    world.run(1_000)
    cluster.start()
    await_ready(cluster)
    cluster.hosts[2].lose_power()
    world.run(3_000)
    cluster.start()
    await_ready(cluster)
    network.isolate("node3")
    cluster.hosts[1].pause()
    world.run(4_000)
    cluster.hosts[1].resume()
    network.heal()
    await_ready(cluster)
    return world.trace_hash


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    assert eventful_trace(7) == eventful_trace(7)
    assert eventful_trace(7) != eventful_trace(8)


def test_the_trace_does_not_depend_on_the_hash_seed() -> None:
    program = "from tests.sim.test_determinism import eventful_trace; print(eventful_trace(7))"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    traces = [process.communicate()[0].strip() for process in processes]
    assert traces == [eventful_trace(7)] * 2
