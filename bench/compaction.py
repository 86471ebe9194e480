"""Compacts the same files with Tidelog and with Apache Kafka, and prints time and memory.

    python bench/compaction.py --records 50000000 --keys 1000000

There is one broker at a time. A producer sends to another topic with acks=all, one record at a
time, before and during the compaction. The time runs from the change of min.cleanable.dirty.ratio
that starts the pass until the cleaner's checkpoint has the end of the pass, so it includes up to
half a second of back-off. The memory is the peak of the broker's process. Kafka's heap is limited
to 1 GB, and it has one cleaner thread.

With `--engine`, only Tidelog's log engine runs, in one thread, without a broker. With `--plain` as
well, it does not use numpy. Run this on a quiet machine, with space for the log twice.
"""

import argparse
import re
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.clients.schema import Schemas
from tests.clients.systems import ApacheKafka, Broker, Tidelog

from tidelog.log.cleaner.cleaning_pass import CleanerLimits, CleaningPass
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import Record, build_batch
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk

STATES = TopicPartition("states", 0)
PER_BATCH = 150
RATIO = "min.cleanable.dirty.ratio"
WARM_UP_SECONDS = 5.0
LIBS = Path(__file__).parents[1] / ".cache/kafka-libs-4.3.1"


class FastKafka(ApacheKafka):
    """Kafka with both compilers, as it runs in production."""

    JAVA = ("java", "-Xms1g", "-Xmx1g")


def fill(log: PartitionLog, given: argparse.Namespace, now: int) -> None:
    value = bytes(range(256)) * (given.size // 256 + 1)
    for first in range(0, given.records, PER_BATCH):
        count = min(PER_BATCH, given.records - first)
        # A multiplication spreads the keys, so that each batch holds keys from all over the set.
        batch = [
            Record(b"%012d" % (n * 2_654_435_761 % given.keys), value[: given.size], now)
            for n in range(first, first + count)
        ]
        packed = memoryview(bytearray(build_batch(batch, compression=given.codec)))
        appended = log.append_as_leader(packed, 0, now, AppendOrigin.CHECKED_CLIENT)
        assert isinstance(appended, Appended), appended
        if log.needs_flush(now):
            flush(log, now)
    flush(log, now)


def flush(log: PartitionLog, now: int) -> None:
    files, up_to = log.begin_flush(now)
    for file in files:
        file.sync()
    log.flushed(up_to)


def compacted(given: argparse.Namespace) -> LogConfig:
    return LogConfig(segment_bytes=given.segment, cleanup_policy=frozenset({"compact"}))


# -- with brokers


class OtherTopic(Thread):
    """Sends one record after the other to a topic that is not compacted."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        self._ended = Event()
        self.latencies_ms: list[float] = []

    def run(self) -> None:
        while not self._ended.wait(0.005):
            began = time.perf_counter()
            self._producer.produce("other", b"." * 100)
            self._producer.flush(30)
            self.latencies_ms.append(1_000 * (time.perf_counter() - began))

    def take(self) -> str:
        """The latencies since the last call, in words."""
        taken, self.latencies_ms = self.latencies_ms, []
        if len(taken) < 100:
            return "too few records"
        points = statistics.quantiles(taken, n=100)
        return f"p50 {points[49]:.2f} ms, p99 {points[98]:.2f} ms, max {max(taken):.1f} ms"

    def stop(self) -> None:
        self._ended.set()
        self.join()


def create_topics(broker: Broker) -> None:
    topics = [
        NewTopic("states", 1, 1, config={"cleanup.policy": "compact", RATIO: "1"}),
        NewTopic("other", 1, 1),
    ]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics(topics).values():
        created.result()


def begin(broker: Broker) -> None:
    """Make the log dirty enough for a pass."""
    entry = ConfigEntry(RATIO, "0.01", incremental_operation=AlterConfigOpType.SET)
    states = ConfigResource(ResourceType.TOPIC, "states", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for changed in admin.incremental_alter_configs([states]).values():
        changed.result()


def prepare(broker: Broker, given: argparse.Namespace, now: int) -> int:
    """Write the log; returns the offset at which a pass ends."""
    broker.format()
    broker.start()
    create_topics(broker)
    other = OtherTopic(broker.bootstrap)
    other.start()
    time.sleep(0.1)
    other.stop()
    broker.stop()
    directory = LogDirectory(RealDisk(broker.data), SystemDice())
    topic_id = directory.topic_id(STATES)
    log = directory.open(STATES, topic_id or UUID(int=1), compacted(given), now)
    assert topic_id is not None, "the topic has no directory"
    fill(log, given, now)
    end = log.find_cleanable(0, log.log_end_offset, now).end
    directory.close({STATES: log.log_end_offset})
    return end


def cleaned_to(broker: Broker) -> int:
    checkpoint = broker.data / "cleaner-offset-checkpoint"
    text = checkpoint.read_text() if checkpoint.exists() else ""
    found = re.search(r"^states 0 (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def peak_mb(broker: Broker) -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{broker.pid}/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) // 1024


def measure(broker: Broker, given: argparse.Namespace, now: int) -> None:
    end = prepare(broker, given, now)
    broker.start()
    other = OtherTopic(broker.bootstrap)
    other.start()
    try:
        time.sleep(WARM_UP_SECONDS)
        print(f"{broker.name:8} producer alone: {other.take()}; memory {peak_mb(broker)} MB")
        began = time.perf_counter()
        begin(broker)
        while cleaned_to(broker) < end:
            assert broker.is_alive(), broker.log_text()[-3_000:]
            time.sleep(0.02)
        took = time.perf_counter() - began
        print(f"{broker.name:8} compacted {end:,} records in {took:.1f} s", end="")
        print(f" ({end / took:,.0f} records/s); memory {peak_mb(broker)} MB")
        print(f"{broker.name:8} producer meanwhile: {other.take()}", flush=True)
    finally:
        other.stop()
        broker.stop()


# -- without a broker


def run_pass(cleaning: CleaningPass, now: int) -> None:
    """Run all jobs of a pass in this thread."""
    while (job := cleaning.next_job()) is not None:
        steps = job.run()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                cleaning.take(done.value, now)
                break


def run_engine(given: argparse.Namespace, root: Path, now: int) -> None:
    directory = LogDirectory(RealDisk(root), SystemDice())
    log = directory.open(STATES, UUID(int=1), compacted(given), now)
    fill(log, given, now)
    print(f"written   {given.records:,} records, {log.size / 1e6:,.0f} MB")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, began_cpu = time.perf_counter(), time.process_time()
    cleanable = log.find_cleanable(0, log.log_end_offset, now)
    limits = CleanerLimits(large_bytes=1 << 60) if given.plain else CleanerLimits()
    cleaning = log.begin_cleaning(cleanable, limits, now)
    run_pass(cleaning, now)
    took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    stats, peak = cleaning.stats, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"compacted {stats.records_read:,} records to {stats.records_kept:,}", end="")
    print(f" in {took:.1f} s, {cpu:.1f} s of CPU: {stats.records_read / took:,.0f} records/s")
    print(f"size      {stats.bytes_read / 1e6:,.1f} MB to {stats.bytes_written / 1e6:,.1f} MB")
    print(f"memory    {(peak - before) / 1024:.0f} MB above the memory before the pass")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--records", type=int, default=200_000)
    options.add_argument("--keys", type=int, default=20_000)
    options.add_argument("--size", type=int, default=100, help="bytes of a value")
    options.add_argument("--codec", default="none")
    options.add_argument("--segment", type=int, default=1 << 30, help="segment.bytes")
    options.add_argument("--system", choices=("kafka", "tidelog"), action="append")
    options.add_argument("--engine", action="store_true", help="only Tidelog's log engine")
    options.add_argument("--plain", action="store_true", help="with --engine: without numpy")
    options.add_argument("--dir", type=Path, help="where to make the log; a temporary directory")
    given = options.parse_args()
    root = Path(tempfile.mkdtemp(prefix="tidelog-compaction-", dir=given.dir))
    now = int(time.time() * 1_000)
    cleaner = {"log.cleaner.backoff.ms": 500, "log.cleaner.threads": 1}
    systems: dict[str, type[Broker]] = {"kafka": FastKafka, "tidelog": Tidelog}
    try:
        if given.engine:
            run_engine(given, root, now)
            return
        for name in given.system or systems:
            measure(systems[name](root / name, Schemas(LIBS), cleaner), given, now)
            shutil.rmtree(root / name)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
