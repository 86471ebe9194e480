"""Compares the acknowledged records with those that a client reads and with every replica's files.

The comparison of files treats a replica's segments as one stream of batches in offset order. It
ignores where one segment ends and the next begins, because a restart or a truncation may begin a
new segment. All replicas must have the same bytes, headers included, in every batch below the high
watermark. Each stream is hashed batch by batch, and offsets and checksums are checked.
"""

import hashlib
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition
from crc32c import crc32c
from tests.clients.librdkafka import consumer_of, poll
from tests.cluster.stream import NUMBER, Stream

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

PREFIX, LAST_DELTA, CRC = struct.Struct(">qi"), struct.Struct(">i"), struct.Struct(">I")
AT_ONCE = 20_000
SEGMENTS = "[0-9]" * 20 + ".log"


@dataclass
class Count:
    acknowledged: int = 0
    read: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    foreign: int = 0
    """Records that were never sent, or were sent to another partition."""

    @property
    def is_clean(self) -> bool:
        return self.lost == self.duplicated == self.out_of_order == self.foreign == 0

    def __str__(self) -> str:
        return (
            f"acknowledged {self.acknowledged:,}, read back {self.read:,}, lost {self.lost}, "
            f"duplicated {self.duplicated}, out of order {self.out_of_order}, "
            f"foreign {self.foreign}"
        )


def count_all(cluster: Cluster, stream: Stream) -> Count:
    """Read every partition as a consumer, and compare it with the acknowledged and sent records."""
    count = Count(acknowledged=sum(stream.acked))
    for partition in range(len(stream.sent)):
        seen = bytearray(stream.sent[partition])
        last = -1
        for number in _numbers(cluster, stream.topic, partition):
            count.read += 1
            if number is None or number >= len(seen):
                count.foreign += 1
                continue
            count.duplicated += seen[number]
            count.out_of_order += number < last
            seen[number], last = 1, number
        count.lost += seen.count(0, 0, stream.acked[partition])
    return count


def _numbers(cluster: Cluster, topic: str, partition: int) -> Iterator[int | None]:
    """The record numbers below the high watermark; None for a record of another partition."""
    where = TopicPartition(topic, partition, 0)
    with consumer_of(cluster, queued_max_messages_kbytes=65536) as consumer:
        watermarks = consumer.get_watermark_offsets(where, timeout=120)
        assert watermarks is not None
        low, high = watermarks
        assert low == 0
        consumer.assign([where])
        while low < high:
            for message in poll(consumer, min(AT_ONCE, high - low)):
                assert message.offset() == low, f"offset {message.offset()} after {low - 1}"
                written_to, number = NUMBER.unpack_from(message.value() or b"")
                yield number if written_to == partition else None
                low += 1


@dataclass(frozen=True)
class Replica:
    """The content of a replica's files for one partition, up to an offset."""

    node: NodeId
    end: int
    bytes: int
    batches: int
    segments: int
    digest: str


def replica_of(cluster: Cluster, node: NodeId, topic: str, partition: int, end: int) -> Replica:
    """Read a replica's segments; offsets must start at 0 without gaps, and all CRCs must match."""
    directory = cluster.data(node) / f"{topic}-{partition}"
    digest, size, batches, next_offset = hashlib.blake2b(), 0, 0, 0
    paths = sorted(directory.glob(SEGMENTS))
    for base, last, content in (batch for path in paths for batch in _batches(path)):
        if base >= end:
            break
        assert base == next_offset, f"{directory}: batch at {base}, expected {next_offset}"
        next_offset = last + 1
        digest.update(content)
        size, batches = size + len(content), batches + 1
    return Replica(node, next_offset, size, batches, len(paths), digest.hexdigest())


def _batches(path: Path) -> Iterator[tuple[int, int, bytes]]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as log:
        position = 0
        while position + PREFIX.size <= len(log):
            base, length = PREFIX.unpack_from(log, position)
            if length <= 0:
                return  # the rest of the file is unused
            content = log[position : position + PREFIX.size + length]
            (delta,), (crc,) = LAST_DELTA.unpack_from(content, 23), CRC.unpack_from(content, 17)
            assert crc32c(content[21:]) == crc, f"{path}: batch at {base} is damaged"
            yield base, base + delta, content
            position += len(content)


def compare_replicas(cluster: Cluster, topic: str, ends: list[int]) -> list[Replica]:
    """Read all replicas; the replicas of one partition must be equal byte for byte."""
    found = []
    for partition, end in enumerate(ends):
        nodes = cluster.topics()[topic][partition].replica_nodes
        replicas = [replica_of(cluster, node, topic, partition, end) for node in nodes]
        found += replicas
        assert {one.end for one in replicas} == {end}, f"{topic}-{partition}: {replicas}"
        assert len({one.digest for one in replicas}) == 1, f"{topic}-{partition}: {replicas}"
    return found
