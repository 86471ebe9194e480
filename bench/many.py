"""Measure creation, memory and restart with ten thousand partitions on three nodes.

Run by `bench/run --measures many`, which adds the duel's modules to the path (see `single.py`).
"""

import signal
import time
from collections.abc import Callable

import procs
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from load import QUIET
from systems import System

Add = Callable[[str, float, str], None]
PER_TOPIC = 100
TOPICS_PER_REQUEST = 5
TIMEOUT = 600.0


def many(system: System, add: Add, partitions: int, copies: int) -> None:
    system.start(3)
    admin = AdminClient({"bootstrap.servers": system.bootstrap, **QUIET})
    begin = time.perf_counter()
    names = [f"many-{n}" for n in range(partitions // PER_TOPIC)]
    for first in range(0, len(names), TOPICS_PER_REQUEST):
        batch = names[first : first + TOPICS_PER_REQUEST]
        topics = [NewTopic(name, PER_TOPIC, copies) for name in batch]
        for made in admin.create_topics(topics, request_timeout=TIMEOUT).values():
            made.result(TIMEOUT)
    what = f"{partitions} partitions, {copies} copies"
    add(f"{what}: creation acknowledged", time.perf_counter() - begin, "s")
    wait_until_led(admin, partitions, copies)
    add(f"{what}: created, led and in sync", time.perf_counter() - begin, "s")
    add(f"{what}: memory of three nodes", procs.rss_mib(system.pids()), "MiB")
    busy, at = procs.cpu_seconds(system.pids()), time.perf_counter()
    time.sleep(10)
    idle = (procs.cpu_seconds(system.pids()) - busy) / (time.perf_counter() - at)
    add(f"{what}: CPU of three idle nodes", 100 * idle, "% of a core")
    restart(system, add, what, partitions, copies)


def restart(system: System, add: Add, what: str, partitions: int, copies: int) -> None:
    """Restart all nodes cleanly; measure until all partitions have a leader and are in sync."""
    for node in system.nodes:
        system.signal(node, signal.SIGTERM)
    for child in system.children.values():
        child.wait(TIMEOUT)
    begin = time.perf_counter()
    system.launch()
    system.ready(TIMEOUT)
    producer = Producer({"bootstrap.servers": system.bootstrap, "acks": "all", **QUIET})
    producer.produce("many-0", b"x")
    if producer.flush(TIMEOUT):
        raise TimeoutError("no first ack after the restart")
    add(f"{what}: restart to first acknowledged write", time.perf_counter() - begin, "s")
    admin = AdminClient({"bootstrap.servers": system.bootstrap, **QUIET})
    wait_until_led(admin, partitions, copies)
    add(f"{what}: restart until all is led and in sync", time.perf_counter() - begin, "s")


def wait_until_led(admin: AdminClient, partitions: int, copies: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        topics = admin.list_topics(timeout=60).topics
        found = [
            p
            for name, t in topics.items()
            if name.startswith("many-")
            for p in t.partitions.values()
        ]
        if len(found) == partitions and all(p.leader >= 0 and len(p.isrs) == copies for p in found):
            return
        time.sleep(0.05)
    raise TimeoutError("not every partition is led and in sync")
