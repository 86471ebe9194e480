"""A producer of keyed records, and a check of what a compacted partition holds on every replica."""

from collections.abc import Iterable
from typing import Any

from tests.sim.messages import produce_to
from tests.sim.replication import TOPIC, placed
from tests.sim.talk import Talk

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ReadResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.node.inspection import NodeInspection
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch, iterate_records
from tidelog.sim.machines.cluster import SimCluster

PARTITION = TopicPartition(TOPIC, 0)
KEYS = 7


class KeyedProducer:
    """An idempotent producer with acks=all. One record in eight is a tombstone."""

    def __init__(self, cluster: SimCluster, every_ms: int = 10) -> None:
        self.last: dict[bytes, tuple[Offset, bytes | None]] = {}
        """For each key, the offset and the value of the last acknowledged record."""
        self.acknowledged = 0
        self._cluster = cluster
        self._every_ms = every_ms
        self._dice = cluster.world.dice.fork("keyed producer")
        self._sequence = 0
        self._is_on = True
        self._record: Record | None = None
        self._talk: Talk | None = None
        self._next()

    @property
    def is_idle(self) -> bool:
        return not self._is_on and self._record is None

    def stop(self) -> None:
        self._is_on = False

    def _next(self) -> None:
        if self._is_on:
            key = b"key %d" % self._dice.below(KEYS)
            value = b"%d" % self._sequence + b"." * self._dice.below(100)
            value_or_none = None if self._dice.below(8) == 0 else value
            self._record = Record(key, value_or_none, self._cluster.world.now)
            self._send()

    def _send(self) -> None:
        if self._talk is None or self._talk.is_lost:
            self._talk = self._connect()
        if self._talk is None or self._record is None:
            self._cluster.world.after(50, self._send)
            return
        batch = build_batch(
            [self._record], producer_id=4_711, producer_epoch=0, base_sequence=self._sequence
        )
        self._talk.begin(produce_to(TOPIC, batch, timeout_ms=1_500), then=self._answered)

    def _connect(self) -> Talk | None:
        up = [host for host in self._cluster.up if TOPIC in host.node.image.topics]
        if not up:
            return None
        seen = placed(up[self._dice.below(len(up))])
        if not seen.has_leader or not self._cluster.hosts[seen.leader].is_up:
            return None
        return Talk(self._cluster, seen.leader, patience_ms=2_000, name="producer")

    def _answered(self, answer: Any) -> None:
        if answer is not None and self._record is not None:
            [(_, [produced])] = answer.topics
            if produced.error is ErrorCode.none:
                key, value = self._record.key, self._record.value
                assert key is not None
                self.last[key] = produced.base_offset, value
                self._sequence += 1
                self.acknowledged += 1
                self._record = None
                self._cluster.world.after(self._every_ms, self._next)
                return
        if self._talk is not None:
            self._talk.close()
        self._talk = None
        self._cluster.world.after(20, self._send)


def log_of(cluster: SimCluster, node: int) -> PartitionLog:
    replica = NodeInspection(cluster.hosts[node].node).replica(PARTITION)
    assert replica is not None
    return replica.log


def records_of(log: PartitionLog) -> list[Record]:
    """Every record of a replica."""
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 1 << 20, log.log_end_offset, at_least_one=True)
        assert isinstance(result, ReadResult), result
        if result.slice is None:
            break
        file, position, length = result.slice
        chunk = memoryview(file.read(position, length))
        for at, header in iterate(chunk):
            found += iterate_records(chunk[at : at + header.size])
            offset = header.next_offset
    return found


def check_last_values(cluster: SimCluster, producer: KeyedProducer, nodes: Iterable[int]) -> None:
    """The last acknowledged value of every key is readable on every replica (F78, F79)."""
    for node in nodes:
        last = {record.key: record for record in records_of(log_of(cluster, node))}
        for key, (offset, value) in producer.last.items():
            found = last.get(key)
            if value is None and found is None:
                continue  # the tombstone has passed its horizon
            assert found is not None, f"node {node} has lost {key!r}"
            assert (found.offset, found.value) == (offset, value)
