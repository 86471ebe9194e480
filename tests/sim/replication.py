"""A replicated partition under faults, with a producer, a reader and a final check.

The final check requires three things. Every acknowledged record is on every replica at its
acknowledged offset, once and in order. Every record that was read is kept. The files of the
replicas are equal byte for byte.
"""

from functools import partial
from itertools import count
from typing import Any

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.cluster_steps import created, images_agree
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to, records_in
from tests.sim.talk import Talk, await_true

from tidelog.controller.image.image import PartitionImage
from tidelog.log.checkpoints.checkpoints import read_epochs
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, Offset
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

TOPIC = "orders"
LIST_OFFSETS, LATEST = 2, -1


def make_topic(
    cluster: SimCluster, replicas: tuple[NodeId, ...] = (1, 2, 3), min_isr: int = 2, **configs: str
) -> None:
    wish = create_topic(TOPIC, on=[replicas], min_insync_replicas=str(min_isr), **configs)
    assert created(Talk(cluster, replicas[0]).ask(wish))
    await_true(cluster, lambda: all(TOPIC in host.node.image.topics for host in cluster.up))


def placed(host: SimHost) -> PartitionImage:
    return host.node.image.topics[TOPIC].partitions[0]


def newest(cluster: SimCluster) -> PartitionImage:
    """The latest state of the partition that any running node knows."""
    known = (host for host in cluster.up if TOPIC in host.node.image.topics)
    return max((placed(host) for host in known), key=lambda one: one.partition_epoch)


def leader_of(cluster: SimCluster) -> SimHost:
    await_true(cluster, lambda: newest(cluster).has_leader)
    return cluster.hosts[newest(cluster).leader]


def followers_of(cluster: SimCluster) -> list[SimHost]:
    placement = newest(cluster)
    return [cluster.hosts[one] for one in placement.replicas if one != placement.leader]


def isr_is_full(cluster: SimCluster) -> bool:
    placement = newest(cluster)
    return placement.has_leader and set(placement.isr) == set(placement.replicas)


class Producer:
    """An idempotent producer with acks=all that retries each batch until it is acknowledged."""

    def __init__(self, cluster: SimCluster, every_ms: int = 10) -> None:
        self.acknowledged: dict[Offset, bytes] = {}
        self.errors: dict[ErrorCode, int] = {}
        self._cluster = cluster
        self._every_ms = every_ms
        self._dice = cluster.world.dice.fork("producer")
        self._numbers = count()
        self._sequence = 0
        self._is_on = True
        self._values: list[bytes] = []
        self._talk: Talk | None = None
        self._next()

    @property
    def is_idle(self) -> bool:
        return not self._is_on and not self._values

    def stop(self) -> None:
        """Send no new batches. The last batch is still retried until it is acknowledged."""
        self._is_on = False

    def _next(self) -> None:
        if self._is_on:
            size = self._dice.below(400)
            counted = range(1 + self._dice.below(3))
            self._values = [b"%d" % next(self._numbers) + b"." * size for _ in counted]
            self._send()

    def _send(self) -> None:
        if self._talk is None or self._talk.is_lost:
            self._talk = self._connect()
        if self._talk is None:
            self._cluster.world.after(50, self._send)
            return
        records = batch(
            *self._values, producer_id=4_711, producer_epoch=0, base_sequence=self._sequence
        )
        self._talk.begin(produce_to(TOPIC, records, timeout_ms=1_500), then=self._answered)

    def _connect(self) -> Talk | None:
        """Connect to the leader that a random node knows; this node's metadata may be stale."""
        up = [host for host in self._cluster.up if TOPIC in host.node.image.topics]
        if not up:
            return None
        seen = placed(up[self._dice.below(len(up))])
        if not seen.has_leader or not self._cluster.hosts[seen.leader].is_up:
            return None
        return Talk(self._cluster, seen.leader, patience_ms=2_000, name="producer")

    def _answered(self, answer: Any) -> None:
        if answer is not None:
            [(_, [produced])] = answer.topics
            self.errors[produced.error] = self.errors.get(produced.error, 0) + 1
            if produced.error is ErrorCode.none:
                self._acknowledge(produced.base_offset)
                self._cluster.world.after(self._every_ms, self._next)
                return
        if self._talk is not None:
            self._talk.close()
        self._talk = None
        self._cluster.world.after(20, self._send)

    def _acknowledge(self, base_offset: Offset) -> None:
        for offset, value in enumerate(self._values, base_offset):
            assert offset not in self.acknowledged, "one offset acknowledged twice"
            self.acknowledged[offset] = value
        self._sequence += len(self._values)
        self._values = []


class Reader:
    """Repeatedly reads records and asks for the end offset, which must not move back (F50).

    Like a client, the reader sends the newest leader epoch that it knows, so a replaced leader
    refuses its requests. A returned end offset is compared with the records that were read before
    the request was sent, because a request may wait for a long time in the socket of a paused
    leader.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.seen: dict[Offset, bytes | None] = {}
        self.latest: Offset = 0
        self._cluster = cluster
        self._dice = cluster.world.dice.fork("reader")
        self._epoch = 0
        self._look()

    def _look(self) -> None:
        up = [host for host in self._cluster.up if TOPIC in host.node.image.topics]
        if up:
            host = up[self._dice.below(len(up))]
            epoch = self._epoch = max(self._epoch, placed(host).leader_epoch)
            talk = Talk(self._cluster, host.id, patience_ms=1_000, name="reader")
            talk.begin(latest_offset(epoch), then=partial(self._end_received, len(self.seen)))
            is_leader = placed(host).leader == host.id
            talk.begin(
                fetch_from(TOPIC, len(self.seen), epoch=epoch),
                then=lambda answer: self._fetched(answer, is_leader),
            )
            self._cluster.world.after(500, talk.close)
        self._cluster.world.after(40, self._look)

    def _end_received(self, seen: int, answer: Any) -> None:
        if answer is not None and answer.topics[0].partitions[0].error_code is ErrorCode.none:
            reported: Offset = answer.topics[0].partitions[0].offset
            assert reported >= seen, "the end has moved back"
            self.latest = max(self.latest, reported)

    def _fetched(self, answer: Any, is_leader: bool) -> None:
        if answer is None:
            return
        [(_, [fetched])] = answer.topics
        # Check only leaders, because a follower may lag behind an offset that was read elsewhere.
        is_out_of_range = fetched.error is ErrorCode.offset_out_of_range
        assert not (is_leader and is_out_of_range), "the end has moved back"
        for record in records_in(fetched.records):
            before = self.seen.setdefault(record.offset, record.value)
            assert before == record.value, f"offset {record.offset} was read with two values"


def latest_offset(epoch: int = -1) -> Any:
    partition = ListOffsetsPartition(
        partition_index=0, timestamp=LATEST, current_leader_epoch=epoch
    )
    topic = ListOffsetsTopic(name=TOPIC, partitions=(partition,))
    return ask(LIST_OFFSETS, replica_id=-1, isolation_level=0, topics=(topic,))


def latest_at(cluster: SimCluster, node: NodeId) -> tuple[ErrorCode, Offset]:
    answer = Talk(cluster, node).ask(latest_offset())
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


# -- the final check -------------------------------------------------------------------------------


def files_of(host: SimHost) -> bytes:
    """The bytes of the replica's segments, one after another."""
    directory = f"{TOPIC}-0"
    names = sorted(name for name in host.disk.list(directory) if name.endswith(".log"))
    return b"".join(host.disk.read_file(f"{directory}/{name}") for name in names)


def check_epochs(host: SimHost) -> None:
    """Check that leader-epoch-checkpoint has the first offset of each epoch that has records."""
    starts: dict[int, int] = {}
    for _, header in iterate(files_of(host)):
        starts.setdefault(header.leader_epoch, header.base_offset)
    reported = dict(read_epochs(host.disk, f"{TOPIC}-0/leader-epoch-checkpoint").starts)
    for epoch, start in starts.items():
        assert reported.get(epoch) == start, (
            f"node {host.id}: epoch {epoch} of {reported}, not {start}"
        )


def check_healed(
    cluster: SimCluster, producer: Producer | None = None, reader: Reader | None = None
) -> None:
    """After all faults, wait until all replicas are in sync and all writes are done, then check."""
    if producer is not None:
        producer.stop()
        await_true(cluster, lambda: producer.is_idle)
    await_true(cluster, lambda: isr_is_full(cluster) and images_agree(cluster))
    replicas = [cluster.hosts[node] for node in newest(cluster).replicas]
    await_true(cluster, lambda: len({files_of(host) for host in replicas}) == 1)
    kept = records_in(files_of(replicas[0]))
    for host in replicas:
        check_epochs(host)
    assert [record.offset for record in kept] == list(range(len(kept)))
    values = [record.value for record in kept]
    if producer is not None:
        for offset, value in producer.acknowledged.items():
            assert offset < len(values), f"acknowledged record {offset} is gone"
            assert values[offset] == value, f"offset {offset} holds another record"
        assert len(set(values)) == len(values), "a record was written twice"
        numbers = [int(value.rstrip(b".")) for value in values]
        assert numbers == sorted(numbers), "records are out of order"
    if reader is not None:
        assert reader.latest <= len(values), "an end was told that lies past the end"
        for offset, seen in reader.seen.items():
            assert values[offset] == seen, f"what was read at {offset} is not there any more"
