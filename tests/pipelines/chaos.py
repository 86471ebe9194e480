"""Writes, ingests and counts records while the driver and the brokers are killed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tidelog.testing import Cluster

PATIENCE_SECONDS = 600.0
QUICK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass
class Load:
    """Writes numbered records while the faults occur, and keeps every acknowledged offset."""

    bootstrap: str
    topic: str
    records: int
    partitions: int
    size: int = 100
    keys: int = 0
    """The number of keys, a multiple of the partitions. With 0, records have no key."""
    acked: list[list[int]] = field(default_factory=list)
    """The acknowledged offsets of each partition."""
    failed: list[str] = field(default_factory=list)
    allowed: float = 0.0
    """The share of the records (0 to 1) that the thread may write for now. Tests raise it."""

    def __enter__(self) -> "Load":
        self.acked = [[] for _ in range(self.partitions)]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        self.allowed = 1.0
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the producer does not come to an end"

    @property
    def acknowledged(self) -> int:
        return sum(map(len, self.acked))

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 20,
                "delivery.timeout.ms": 600_000,
                "retry.backoff.ms": 50,
                "log_level": 0,
            }
        )
        sent = 0
        while sent < self.records:
            if sent >= self.allowed * self.records or len(producer) > 50_000:
                producer.poll(0.02)
                continue
            value = b'{"number":%d,"filler":"%s"}' % (sent, b"x" * (self.size - 30))
            producer.produce(
                self.topic,
                value,
                str(sent % self.keys) if self.keys else None,
                partition=sent % self.partitions,
                on_delivery=self._delivered,
            )
            sent += 1
            if not sent % 500:
                producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        if problem is not None:
            self.failed.append(problem.str())
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acked[partition].append(offset)


class Driver:
    """A job as a separate process with its JVM, in a process group that is killed as a whole."""

    def __init__(
        self,
        arguments: list[str],
        log: Path,
        job: str = "ingest",
        package: str = "tidelog_pipelines.jobs",
        source: Path | None = None,
    ) -> None:
        """`source` is the directory of another version of the packages."""
        own = [] if source is None else [str(source)]
        self._path = os.pathsep.join([*own, *sys.path])
        self._module = f"{package}.{job}"
        self._arguments = arguments
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    self._module,
                    *self._arguments,
                    *more,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": self._path},
                process_group=0,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def kill_worker(self, dice: random.Random) -> bool:
        """Kill one of the Python workers that run the tasks. Returns False if there is none."""
        assert self._process is not None
        found = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
        own = [pid for pid in found if _is_worker(pid) and _descends(pid, self._process.pid)]
        if not own:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(own), signal.SIGKILL)
        return True

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """Send SIGTERM, wait until the process ends, and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(PATIENCE_SECONDS)

    def await_batch(self) -> None:
        """Wait until the driver has printed another batch."""
        before, deadline = self._batches(), time.monotonic() + PATIENCE_SECONDS
        while self._batches() == before:
            assert self._process is not None
            assert self._process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def said(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _batches(self) -> int:
        return self.said().count("\nbatch ") + self.said().startswith("batch ")


def _is_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is a child, a grandchild and so on of another one."""
    while pid > 1 and pid != ancestor:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        pid = int(fields[1])
    return pid == ancestor


def kill_brokers(cluster: Cluster, topic: str, kills: int, dice: random.Random) -> None:
    """Kill brokers one after the other. After each kill, wait until all replicas are in sync again.

    Call this in the main thread. A broker gets SIGKILL when the thread that started it ends, so
    that the broker does not outlive the test.
    """
    for _ in range(kills):
        victim = dice.choice(list(cluster.nodes))
        cluster.kill(victim)
        cluster.start(victim)
        for partition in cluster.topics()[topic]:
            cluster.wait_for_isr(topic, partition, size=len(cluster.nodes))


@contextmanager
def driver_kills(driver: Driver, load: Load, kills: int, dice: random.Random) -> Iterator[None]:
    """In a thread, start the driver repeatedly, and kill it at a random point of its work."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            for number in range(kills):
                load.allowed = (number + 1) / (kills + 1)
                driver.start()
                if number % 3 == 2:
                    time.sleep(dice.uniform(2, 10))  # at a random point of its start or its work
                else:
                    driver.await_batch()
                    time.sleep(dice.uniform(0, 2))
                driver.kill()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(2 * PATIENCE_SECONDS)
    assert not thread.is_alive(), "the driver does not get on"
    assert not failures, failures
