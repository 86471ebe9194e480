"""Java members of two versions and both protocols share a group while brokers die and restart.

Two members use kafka-clients 4.3.1 and two use 4.4.0, each version with both protocols. The group
begins with classic members only and becomes a consumer group when the others join.
"""

import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.clients.java import JVM, QUIET
from tests.clients.systems import PATIENCE
from tests.cluster.coordinators import coordinator_of

from tidelog.testing import Cluster

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("GroupMembers.java")
NEWER_CLIENT = "4.4.0"
GROUP, TOPIC = "movers", "moved"
PARTITIONS = 6
LONG = 4 * PATIENCE


class Read(NamedTuple):
    at: int
    member: str
    first: int
    last: int


class Committed(NamedTuple):
    at: int
    member: str
    next: int


class Journal:
    """What the members of all JVMs have reported."""

    def __init__(self) -> None:
        self.reads: dict[int, list[Read]] = defaultdict(list)
        self.commits: dict[int, list[Committed]] = defaultdict(list)
        self.failures: list[str] = []

    def note(self, line: str) -> None:
        word, *rest = line.split()
        if word == "read":
            at, member, partition, first, last = rest
            self.reads[int(partition)].append(Read(int(at), member, int(first), int(last)))
        elif word == "committed":
            at, member, partition, end = rest
            self.commits[int(partition)].append(Committed(int(at), member, int(end)))
        elif word == "failed":
            self.failures.append(line)

    def committed_by(self, since: int) -> set[str]:
        """The members that have committed something after this time."""
        found = [one for commits in list(self.commits.values()) for one in list(commits)]
        return {one.member for one in found if one.at > since}

    def committed(self) -> dict[int, int]:
        return {index: max(one.next for one in list(c)) for index, c in list(self.commits.items())}


class Members:
    """Members in one JVM."""

    def __init__(self, journal: Journal, bootstrap: str, libs: Path, *members: str) -> None:
        self._process = subprocess.Popen(
            ["java", *JVM, *QUIET, "-cp", f"{libs}/*", str(PROGRAM), bootstrap, TOPIC, *members],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._journal = journal
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._journal.note(line)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()


class Load:
    """A producer that writes to all partitions until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._over.wait(0.02):
            self._producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
            self._producer.poll(0)
            number += 1

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        assert self._producer.flush(LONG) == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def newer_client() -> Path:
    done = subprocess.run(
        [ROOT / "tools/kafka-jars", "clients"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "KAFKA_VERSION": NEWER_CLIENT},
    )
    assert done.returncode == 0, "tools/kafka-jars failed; it says why above"
    return Path(done.stdout.strip())


def until(journal: Journal, ready: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONG
    while not ready():
        assert not journal.failures, journal.failures
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def await_all_at_work(journal: Journal, members: set[str]) -> None:
    """Each member owns a partition and commits, from now on."""
    since = int(time.time() * 1_000)
    until(
        journal,
        lambda: journal.committed_by(since) >= members,
        lambda: f"stuck: {members - journal.committed_by(since)}",
    )


def check_no_offset_goes_back(journal: Journal) -> None:
    for partition, commits in journal.commits.items():
        ends = [one.next for one in sorted(commits)]
        assert ends == sorted(ends), f"partition {partition}"


def check_only_uncommitted_records_are_read_again(journal: Journal) -> None:
    for partition, reads in journal.reads.items():
        commits = sorted(journal.commits[partition])
        for read in reads:
            before = max((one.next for one in commits if one.at < read.at), default=0)
            assert read.first >= before, f"{read} of partition {partition}: {before} was committed"


def check_everything_was_read(journal: Journal, ends: dict[int, int]) -> None:
    for partition, end in ends.items():
        covered = 0
        for read in sorted(journal.reads[partition], key=lambda one: one.first):
            assert read.first <= covered, f"partition {partition}: {covered} was skipped"
            covered = max(covered, read.last + 1)
        assert covered == end


def type_of(admin: AdminClient, group: str) -> ConsumerGroupType:
    listed = admin.list_consumer_groups().result(PATIENCE).valid
    [found] = [one.type for one in listed if one.group_id == group]
    return found


def ends_of(bootstrap: str) -> dict[int, int]:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        found = {
            index: reader.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=PATIENCE)
            for index in range(PARTITIONS)
        }
    finally:
        reader.close()
    return {index: high for index, (_, high) in found.items()}


def test_f66_java_members_of_both_protocols_migrate_while_brokers_die(
    cluster: Cluster, kafka_libs: Path, newer_client: Path
) -> None:
    """F69 as well: every member works again after each failover and each restart."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, replication_factor=3)])
    created[TOPIC].result(PATIENCE)
    journal, started = Journal(), list[Members]()

    def start(libs: Path, *members: str) -> None:
        started.append(Members(journal, cluster.bootstrap, libs, *members))

    load = Load(cluster.bootstrap)
    try:
        start(kafka_libs, "old-classic:classic")
        start(newer_client, "new-classic:classic")
        await_all_at_work(journal, {"old-classic", "new-classic"})
        start(kafka_libs, "old-consumer:consumer")
        start(newer_client, "new-consumer:consumer")
        members = {"old-classic", "new-classic", "old-consumer", "new-consumer"}
        await_all_at_work(journal, members)
        assert type_of(admin, GROUP) is ConsumerGroupType.CONSUMER

        killed = coordinator_of(cluster, GROUP)
        cluster.kill(killed)
        await_all_at_work(journal, members)
        cluster.start(killed)
        for node in list(cluster.running):
            cluster.restart(node)
            await_all_at_work(journal, members)

        load.end()
        ends = ends_of(cluster.bootstrap)
        until(journal, lambda: journal.committed() == ends, lambda: (journal.committed(), ends))
    finally:
        for one in started:
            one.end()
    check_no_offset_goes_back(journal)
    check_only_uncommitted_records_are_read_again(journal)
    check_everything_was_read(journal, ends)
