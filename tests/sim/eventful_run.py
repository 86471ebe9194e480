"""A short simulation with several kinds of faults, and the hash of its trace."""

from tests.sim.messages import batch, create_topic, produce_to
from tests.sim.talk import Talk, await_ready, running


def eventful_trace(seed: int) -> str:
    """Create topics, write, kill, cut power, partition and pause; return the hash of the trace."""
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
