"""Measure a producer while a consumer reads old records that are not in the page cache.

    python bench/cold_reads.py [--gb N] [--seconds N] [--read-mb-per-s N] [--system NAME ...]

There is one broker. A producer sends 1,000 records of 1 KiB per second with acks=all and linger 0.
It first runs alone, and then while another process reads a topic of `--gb` gigabytes from its
beginning. The files of that topic are dropped from the page cache before each pass of the reader.
With `--seeks` the reader jumps to a random offset after every few hundred records.
`--read-mb-per-s` limits the broker's reads from the disk (cgroup v1, needs root), as a slower disk
would.

The last column is the share of time in which the broker's main thread waited for the disk. While
Tidelog's main thread waits, no client is served. This share does not depend on other load on the
machine.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.apache import KafkaCluster

from tidelog.testing import Cluster

ROOT = Path(__file__).parents[1]
SYSTEMS = ("tidelog", "kafka")
RATE = 1_000
SIZE = 1_024
BLKIO = Path("/sys/fs/cgroup/blkio")


class Row(NamedTuple):
    name: str
    p50: float
    p99: float
    longest: float
    read_mb_per_s: float
    waits: float


@contextmanager
def broker(system: str, directory: Path) -> Iterator[Cluster]:
    if system == "kafka":
        done = subprocess.run(
            [ROOT / "tools" / "kafka-jars"], stdout=subprocess.PIPE, text=True, check=True
        )
        with KafkaCluster(Path(done.stdout.strip()), 1, directory=directory) as cluster:
            yield cluster
    else:
        with Cluster(1, directory=directory, network_faults=False) as cluster:
            yield cluster


def fill(bootstrap: str, records: int) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1_000_000, "acks": "1"}
    )
    value = os.urandom(SIZE)
    for _ in range(records):
        while True:
            try:
                producer.produce("old", value)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise TimeoutError("the topic could not be filled")


def drop_from_cache(directory: Path) -> None:
    for path in directory.rglob("old-0/*"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(bootstrap: str, directory: Path, stop: Event, count: Any, seeks: bool) -> None:
    """Read the old topic from its beginning, again and again, each time from a cold cache."""
    if seeks:
        jump(bootstrap, directory, stop, count)
    number = 0
    while not stop.is_set():
        drop_from_cache(directory)
        number += 1
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"cold-{number}",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["old"])
        at_end = False
        while not stop.is_set() and not at_end:
            for message in consumer.consume(500, 0.2):
                at_end = at_end or message.error() is not None
                count.value += 0 if message.error() else len(message.value())
        consumer.close()


def jump(bootstrap: str, directory: Path, stop: Event, count: Any) -> None:
    """Read a few hundred records at random offsets of the old topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "jumps"})
    _, end = consumer.get_watermark_offsets(TopicPartition("old", 0), 30)
    dice = random.Random(1)
    while not stop.is_set():
        drop_from_cache(directory)
        for _ in range(20):
            consumer.assign([TopicPartition("old", 0, dice.randrange(end - 500))])
            for message in consumer.consume(300, 5):
                count.value += 0 if message.error() else len(message.value())
    consumer.close()


class DiskWaits:
    """Samples how often the main thread of a process waits for the disk (state D)."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._samples = self._waits = 0
        self._is_over = False
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "DiskWaits":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over:
            self._samples += 1
            self._waits += self._stat.read_text().rpartition(") ")[2].startswith("D")
            time.sleep(0.001)

    @property
    def share(self) -> float:
        return 100 * self._waits / self._samples


def latencies(bootstrap: str, seconds: float) -> list[float]:
    """Milliseconds from each send to its acknowledgement."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    taken: list[float] = []

    def acked(sent_at: float) -> Any:
        return lambda error, _: taken.append(1_000 * (time.perf_counter() - sent_at))

    value, begin = os.urandom(SIZE), time.perf_counter()
    for number in range(int(RATE * seconds)):
        due = begin + number / RATE
        while (now := time.perf_counter()) < due:
            producer.poll(due - now)
        # The latency of a late send counts from the time at which the send was due.
        producer.produce("live", value, on_delivery=acked(due))
        producer.poll(0)
    if producer.flush(60):
        raise TimeoutError("records were not acknowledged")
    return taken[RATE:]


def row(name: str, taken: list[float], read: float, waits: float) -> Row:
    cuts = statistics.quantiles(taken, n=100)
    return Row(name, cuts[49], cuts[98], max(taken), read, waits)


@contextmanager
def limited(pid: int, directory: Path, mb_per_s: int) -> Iterator[None]:
    """Limit the rate at which a process reads from this directory's disk; 0 means no limit."""
    if not mb_per_s:
        yield
        return
    device = directory.stat().st_dev
    group = BLKIO / f"tidelog-bench-{pid}"
    group.mkdir()
    try:
        limit = f"{os.major(device)}:{os.minor(device)} {mb_per_s * 1_000_000}"
        (group / "blkio.throttle.read_bps_device").write_text(limit)
        (group / "cgroup.procs").write_text(str(pid))
        yield
        (BLKIO / "cgroup.procs").write_text(str(pid))
    finally:
        with suppress(OSError):
            group.rmdir()


def measured(system: str, gb: float, seconds: float, mb_per_s: int, *, seeks: bool) -> list[Row]:
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory,
        broker(system, Path(directory) / "cluster") as cluster,
    ):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic("old", 1, 1), NewTopic("live", 1, 1)]).values():
            made.result(30)
        fill(cluster.bootstrap, int(gb * 1e9 / SIZE))
        os.sync()
        latencies(cluster.bootstrap, 5)
        with limited(cluster.nodes[1].pid, Path(directory), mb_per_s):
            pid = cluster.nodes[1].pid
            with DiskWaits(pid) as waits:
                taken = latencies(cluster.bootstrap, seconds)
            rows = [row(f"{system} alone", taken, 0, waits.share)]
            stop, count = multiprocessing.Event(), multiprocessing.Value("q", 0)
            reader = multiprocessing.Process(
                target=read_all, args=(cluster.bootstrap, cluster.data(1), stop, count, seeks)
            )
            reader.start()
            try:
                time.sleep(2)
                before, at = count.value, time.perf_counter()
                with DiskWaits(pid) as waits:
                    taken = latencies(cluster.bootstrap, seconds)
                read = (count.value - before) / 1e6 / (time.perf_counter() - at)
                rows.append(row(f"{system} beside a cold reader", taken, read, waits.share))
            finally:
                stop.set()
                reader.join(30)
                reader.kill()
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--read-mb-per-s", type=int, default=0)
    parser.add_argument("--seeks", action="store_true")
    parser.add_argument("--system", choices=SYSTEMS, action="append")
    options = parser.parse_args()
    print(f"{'':32}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'read MB/s':>11}{'waits %':>9}")
    for system in options.system or SYSTEMS:
        limit = options.read_mb_per_s
        for one in measured(system, options.gb, options.seconds, limit, seeks=options.seeks):
            print(
                f"{one.name:32}{one.p50:9.2f}{one.p99:9.2f}{one.longest:9.1f}"
                f"{one.read_mb_per_s:11.1f}{one.waits:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
