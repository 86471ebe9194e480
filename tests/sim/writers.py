"""Writes to one partition, and checks that acknowledged records are kept."""

from itertools import count
from typing import Any

from tests.sim.messages import batch, fetch_from, produce_to, records_in
from tests.sim.talk import Talk

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.protocol.records.records import Record
from tidelog.sim.machines.cluster import SimCluster

MAX_BATCH = 5


class Writer:
    """Sends batches of numbered records to a partition through the node that leads it."""

    def __init__(
        self, cluster: SimCluster, topic: str, partition: int = 0, *, acks: int = -1
    ) -> None:
        self.acknowledged: dict[int, bytes] = {}
        """Offset -> value of every record whose batch was acknowledged."""
        self.sent: list[bytes] = []
        self._cluster = cluster
        self.topic = topic
        self.partition = partition
        self._acks = acks
        self._dice = cluster.world.dice.fork(f"writer of {topic}-{partition}")
        self._numbers = count()
        self._talk: Talk | None = None
        self._node: NodeId = NO_NODE

    def connect(self, node: NodeId) -> None:
        self._talk = Talk(self._cluster, node, patience_ms=10_000)
        self._node = node

    def aim(self, node: NodeId) -> None:
        """Connect to this node, unless the writer is already connected to it."""
        if self._talk is None or self._talk.is_lost or self._node != node:
            self.connect(node)

    def write(self) -> None:
        """Send one batch; its answer may come later or never."""
        assert self._talk is not None
        values = [b"%d" % next(self._numbers) for _ in range(1 + self._dice.below(MAX_BATCH))]
        padding = b"." * self._dice.below(2_000)
        values = [value + padding for value in values]
        self.sent += values

        def answered(answer: Any) -> None:
            if answer is not None:
                [(_, [produced])] = answer.topics
                if produced.error is ErrorCode.none:
                    for offset, value in enumerate(values, produced.base_offset):
                        assert offset not in self.acknowledged, "an offset given twice"
                        self.acknowledged[offset] = value

        wanted = {self.partition: batch(*values)}
        self._talk.begin(produce_to(self.topic, wanted, acks=self._acks), then=answered)

    def check(self, found: list[Record]) -> None:
        """Check that the log has no gap, and no lost, repeated or misplaced record."""
        assert [record.offset for record in found] == list(range(len(found)))
        kept = [record.value for record in found]
        for offset, value in self.acknowledged.items():
            assert offset < len(kept), f"acknowledged record {offset} is gone"
            assert kept[offset] == value, f"offset {offset} holds another record"
        order = {value: place for place, value in enumerate(self.sent)}
        places = [order[value] for value in kept]
        assert places == sorted(set(places)), "records out of order or repeated"


def read_all(talk: Talk, topic: str, partition: int = 0) -> list[Record]:
    """Every record that a consumer of this partition reads."""
    found: list[Record] = []
    while True:
        offset = found[-1].offset + 1 if found else 0
        answer = talk.ask(fetch_from(topic, {partition: offset}, max_bytes=20_000))
        [(_, [fetched])] = answer.topics
        assert fetched.error is ErrorCode.none, fetched
        records = records_in(fetched.records)
        if not records:
            return found
        found += [record for record in records if record.offset >= offset]
