"""Topics with several replicas under load: every replica must hold all acknowledged records."""

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from tests.clients.librdkafka import consumer_of
from tests.cluster.audit import replica_of
from tests.cluster.damage import look_ups
from tests.cluster.stream import NUMBER, Stream

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

WIDE, PAIRS = "wide", "pairs"
PER_SECOND = 250.0
"""Records per second for each topic."""
BATCH_RECORDS = 20
"""The largest batch, in records; it is small, so that a segment holds many batches."""
QUIET_POLLS = 40
"""After this many empty polls of half a second, no further records are expected."""


class Replicated:
    """Two topics under constant load, one with three replicas and one with two."""

    def __init__(self, cluster: Cluster, **configs: object) -> None:
        self._cluster = cluster
        nodes = list(cluster.nodes)
        cluster.create_topic(WIDE, 3, 3, min_insync_replicas=2, **configs)
        pairs = [[one, nodes[place - 1]] for place, one in enumerate(nodes)]
        cluster.create_topic(PAIRS, assignment=pairs, min_insync_replicas=1, **configs)
        self.replicas: dict[tuple[str, int], list[NodeId]] = {
            (topic, index): list(placed.replica_nodes)
            for topic in (WIDE, PAIRS)
            for index, placed in cluster.topics()[topic].items()
        }
        self._stack = ExitStack()
        self.streams = {
            topic: self._stack.enter_context(
                Stream(
                    cluster.bootstrap,
                    topic,
                    3,
                    in_flight=2_000,
                    per_second=PER_SECOND,
                    batch_num_messages=BATCH_RECORDS,
                )
            )
            for topic in (WIDE, PAIRS)
        }

    def directories(self) -> list[str]:
        return [f"{topic}-{index}" for topic, index in self.replicas]

    def await_whole(self, timeout: float) -> None:
        """Wait until every replica is in sync and every partition acknowledges writes."""
        self.await_in_sync(timeout)
        for stream in self.streams.values():
            stream.await_acks()

    def await_in_sync(self, timeout: float) -> None:
        for (topic, index), nodes in self.replicas.items():
            self._cluster.wait_for_isr(topic, index, nodes, timeout=timeout)

    def stop(self) -> None:
        """Stop the load, and wait until every sent record is answered."""
        self._stack.close()

    def abandon(self) -> None:
        for stream in self.streams.values():
            stream.abandon()
        self._stack.close()

    @property
    def acknowledged(self) -> int:
        return sum(sum(stream.acked) for stream in self.streams.values())

    # -- checks of the records ---------------------------------------------------------------------

    def problems(self, rng: random.Random) -> list[str]:
        """Unexpected answers to producers, and acknowledged records that a consumer cannot read."""
        found = [line for one in self.streams.values() for line in (*one.strays, *one.failed)]
        ends = {
            (topic, index): stream.acked[index]
            for topic, stream in self.streams.items()
            for index in range(len(stream.acked))
        }
        back = ReadBack(ends)
        back.read(self._cluster)
        for (topic, index), timestamps in back.timestamps.items():
            back.problems += look_ups.problems(self._cluster, topic, index, timestamps, rng)
        return found[:5] + back.problems[:10]

    def problems_on(self, node: NodeId) -> list[str]:
        """Differences between the files of a node and those of the other replicas."""
        found = []
        for (topic, index), nodes in self.replicas.items():
            if node in nodes:
                end = self.streams[topic].acked[index]
                found += compared(self._cluster, topic, index, end, nodes)
        return found

    def problems_on_all(self) -> list[str]:
        return [
            problem
            for (topic, index), nodes in self.replicas.items()
            for problem in compared(
                self._cluster, topic, index, self.streams[topic].sent[index], nodes
            )
        ]


def compared(cluster: Cluster, topic: str, index: int, end: int, nodes: list[NodeId]) -> list[str]:
    """Differences between replicas, which must hold the same bytes up to this offset."""
    found, digests = [], {}
    for node in nodes:
        try:
            replica = replica_of(cluster, node, topic, index, end)
        except (AssertionError, OSError, struct.error, ValueError) as broken:
            found.append(f"{topic}-{index} on node {node}: {broken}")
            continue
        digests[node] = replica.digest
        if replica.end < end:
            found.append(f"{topic}-{index} on node {node} ends at {replica.end}, not at {end}")
    if len(set(digests.values())) > 1 and not found:
        found.append(f"{topic}-{index}: the replicas {list(digests)} differ below {end}")
    return found


class ReadBack:
    """Reads every partition from its start; record n must be at offset n, with a valid checksum."""

    def __init__(self, ends: dict[tuple[str, int], int]) -> None:
        self._ends = ends
        self._due = dict.fromkeys(ends, 0)
        self.problems: list[str] = []
        self.timestamps: dict[tuple[str, int], dict[int, int]] = {where: {} for where in ends}

    def read(self, cluster: Cluster) -> None:
        with _consumer(cluster) as consumer:
            consumer.assign([TopicPartition(topic, index, 0) for topic, index in self._ends])
            quiet = 0
            while quiet < QUIET_POLLS and len(self.problems) < 10 and self._is_any_due():
                messages = consumer.consume(10_000, 0.5)
                quiet = 0 if messages else quiet + 1
                for message in messages:
                    self._see(message)
        for (topic, index), end in self._ends.items():
            at = self._due[(topic, index)]
            if at < end:
                self.problems.append(f"{topic}-{index}: read to {at}, {end - at} acknowledged more")

    def _is_any_due(self) -> bool:
        return any(self._due[where] < end for where, end in self._ends.items())

    def _see(self, message: Message) -> None:
        problem = message.error()
        topic, index, offset = message.topic(), message.partition(), message.offset()
        if problem is not None:
            if not problem.retriable() and problem.code() != KafkaError._PARTITION_EOF:
                self.problems.append(f"{topic}-{index}: {problem}")
            return
        assert topic is not None
        assert index is not None
        assert offset is not None
        where = (topic, index)
        if offset != self._due[where]:
            self.problems.append(f"{topic}-{index}: offset {offset} after {self._due[where] - 1}")
        found = NUMBER.unpack_from(message.value() or b"\0" * NUMBER.size)
        if found != (index, offset):
            self.problems.append(f"{topic}-{index}: wrong data at {offset}: {found}")
        self._due[where] = offset + 1
        self.timestamps[where][offset] = message.timestamp()[1]


@contextmanager
def _consumer(cluster: Cluster) -> Iterator[Consumer]:
    # The consumer checks checksums, because brokers do not check each batch that they send.
    config = {"check_crcs": True, "enable_partition_eof": False, "auto_offset_reset": "error"}
    with consumer_of(cluster, **config) as consumer:  # type: ignore[arg-type]
        yield consumer
