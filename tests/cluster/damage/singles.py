"""Topics with one replica per partition, whose damaged records no other node has.

A node must not delete any of these records, and must not return a wrong record. It must return
every record that is readable, and an error for every other offset.
"""

from pathlib import Path

from tests.clients.librdkafka import producer_of
from tests.clients.systems import PATIENCE
from tests.cluster.damage.batch_files import CHECKED_FROM, batches_under, offsets_in, whole_batches
from tests.cluster.damage.look_ups import fetch_at
from tests.cluster.stream import NUMBER, VALUE_BYTES

from tidelog.log.checkpoints import partition_metadata
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.protocol.records.records import iterate_records
from tidelog.runtime.files.disk import RealDisk
from tidelog.testing import Cluster

RECORDS = 400
AT_ONCE = 20


class Singles:
    """A topic with one partition on each node, written once; `renew` replaces a damaged topic."""

    def __init__(self, cluster: Cluster, **configs: object) -> None:
        self._cluster = cluster
        self._configs = configs
        self._made = 0
        self.topic = ""
        self.renew()

    def renew(self) -> None:
        self._made += 1
        self.topic = f"alone{self._made}"
        nodes = list(self._cluster.nodes)
        self._cluster.create_topic(
            self.topic, assignment=[[node] for node in nodes], **self._configs
        )
        producer = producer_of(self._cluster, enable_idempotence=True, batch_num_messages=AT_ONCE)  # type: ignore[arg-type]
        for number in range(RECORDS):
            for partition in range(len(nodes)):
                producer.produce(self.topic, value(partition, number), partition=partition)
            if number % AT_ONCE == 0:
                producer.flush(PATIENCE)
        assert producer.flush(PATIENCE) == 0

    def partition_of(self, node: NodeId) -> int:
        return list(self._cluster.nodes).index(node)

    def directory_of(self, node: NodeId) -> str:
        return f"{self.topic}-{self.partition_of(node)}"

    def problems(self, node: NodeId, before: Path, after: Path, *, was_damaged: bool) -> list[str]:
        """The errors of a node's partition, given its files before and after the damage."""
        partition = self.partition_of(node)
        read, errors = self._read(node, partition)
        found = [
            f"{self.topic}-{partition}: wrong data at {offset}: {got[:40]!r}"
            for offset, got in read.items()
            if offset >= RECORDS or got != value(partition, offset)
        ]
        directory = after / self.directory_of(node)
        could = set(range(RECORDS))
        if was_damaged:
            # Use `&=`, because the damaged directory may hold offsets of another partition.
            could &= offsets_in(directory)
        if _names_another_topic(before, after, self.directory_of(node)):
            could = set()  # the node must keep these records but not serve them
        if missing := could - set(read):
            found.append(
                f"{self.topic}-{partition}: {len(missing)} records could be read and are not, "
                f"from {min(missing)} on: {errors}"
            )
        if was_damaged and directory.is_dir():
            kept = batches_under(self._cluster.data(node))
            deleted = [
                batch.base
                for log in directory.glob("*.log")
                if log.is_file()
                for batch in whole_batches(log.read_bytes())
                if batch.content[CHECKED_FROM:] not in kept
            ]
            if deleted:
                found.append(f"{self.topic}-{partition}: deleted batches at {sorted(deleted)[:10]}")
        return found

    def _read(self, node: NodeId, partition: int) -> tuple[dict[int, bytes], dict[str, int]]:
        """The records that fetches return, and how often each error occurred."""
        read: dict[int, bytes] = {}
        errors: dict[str, int] = {}
        offset = 0
        while offset < RECORDS:
            error, content = fetch_at(self._cluster, node, self.topic, partition, offset)
            before = offset
            if error is ErrorCode.none:
                for batch in whole_batches(content):
                    for record in iterate_records(memoryview(batch.content)):
                        read[record.offset] = bytes(record.value or b"")
                    offset = max(offset, batch.last + 1)
            if offset == before:
                name = error.name if error is not ErrorCode.none else "nothing"
                errors[name] = errors.get(name, 0) + 1
                offset += 1
        return read, errors


def _names_another_topic(before: Path, after: Path, directory: str) -> bool:
    reads = [
        partition_metadata.read(RealDisk(data), directory)
        for data in (before, after)
        if (data / directory / "partition.metadata").is_file()
    ]
    if len(reads) < 2 or reads[1].topic_id is None:
        return False
    return reads[0].topic_id != reads[1].topic_id or not reads[1].is_in_place(
        int(directory.rpartition("-")[2])
    )


def value(partition: int, number: int) -> bytes:
    return NUMBER.pack(partition, number).ljust(VALUE_BYTES, b".")
