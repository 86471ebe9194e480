"""One trial of what acks, replicas and min.insync.replicas save when a leader dies.

Every combination is a topic of its own, all led by one broker. The network holds what the followers
would fetch from it, so that it has what they lack; then it is killed, for good. What the settings
let happen next, happens: a replica that is in sync is elected, or one that fell behind, or there is
none. What can be read at the end is compared with what was acknowledged.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from kio.schema.elect_leaders.v2 import request as elect
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.produce.v9 import request as produce
from kio.schema.produce.v9.response import ProduceResponse

from tidelog.cli import admin
from tidelog.cli.client import Client
from tidelog.cli.connection import Connection, ConnectionLost
from tidelog.cli.demo_load import Tally, read_back, tally
from tidelog.cli.errors import CommandFailed
from tidelog.cli.local_cluster import BROKER_LISTENER
from tidelog.cli.producer import ACKS_ALL, Producer
from tidelog.cli.throwaway_cluster import ThrowawayCluster
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.protocol.records import Record, build_batch

BROKERS = (1, 2, 3)
LEADER, FOLLOWERS = BROKERS[0], BROKERS[1:]
RECORDS = 100
LAG_TIME_MS = 1_000
ANSWER_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.02
PRODUCE_SECONDS = 300
"""Longer than anything here takes: a write is to be answered or to lose its leader."""
UNCLEAN = 1
"""ElectLeaders' type of election."""

_NOTHING = MetadataRequest(
    topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
)


class Cell(NamedTuple):
    acks: int
    replicas: int
    min_isr: int

    @property
    def topic(self) -> str:
        return f"acks-{self.acks_name}-replicas-{self.replicas}-min-{self.min_isr}"

    @property
    def acks_name(self) -> str:
        return "all" if self.acks == ACKS_ALL else str(self.acks)


CELLS = [Cell(*cell) for cell in product((0, 1, ACKS_ALL), (1, 3), (1, 2))]


class Trial:
    """One leader, killed once; `has_lagged` is whether its followers had left the ISR by then."""

    def __init__(self, say: Callable[[str], None], *, has_lagged: bool) -> None:
        self._say = say
        self._has_lagged = has_lagged

    def run(self) -> dict[Cell, Tally]:
        properties = {"replica.lag.time.max.ms": str(LAG_TIME_MS)} if self._has_lagged else {}
        self._say("Starting three brokers.")
        with (
            ThrowawayCluster(len(BROKERS), properties, has_network=True) as cluster,
            Client(cluster.bootstrap, ANSWER_SECONDS) as self._client,
        ):
            self._create()
            return self._kill(cluster)

    def _create(self) -> None:
        for cell in CELLS:
            admin.create_topic(
                self._client,
                cell.topic,
                partitions=None,
                replication_factor=None,
                assignment=[BROKERS[: cell.replicas]],
                configs={"min.insync.replicas": str(cell.min_isr)},
            )
        for cell in CELLS:
            self._await_isr(cell, BROKERS[: cell.replicas])
        self._say(f"Broker {LEADER} leads {len(CELLS)} topics, all replicas are in sync.")

    def _kill(self, cluster: ThrowawayCluster) -> dict[Cell, Tally]:
        cluster.network.cut(FOLLOWERS, [LEADER], BROKER_LISTENER)
        cluster.network.cut([LEADER], FOLLOWERS, BROKER_LISTENER)
        self._say(f"The followers' fetches are held; {RECORDS} records go to each topic.")
        with ThreadPoolExecutor(len(CELLS)) as pool:
            leader = cluster.address(LEADER)
            writes = {cell: pool.submit(_write, cell, *leader) for cell in CELLS}
            self._await_answers(writes)
            if self._has_lagged:
                for cell in (cell for cell in CELLS if cell.replicas > 1):
                    self._await_isr(cell, [LEADER])
                self._say(f"The followers have left the ISR, which is broker {LEADER} alone.")
                self._await_answers(writes, min_isr=1)
            cluster.kill(LEADER)
            self._say(f"kill -9 of broker {LEADER}; it does not come back.")
        return self._count({cell: write.result() for cell, write in writes.items()})

    def _await_answers(self, writes: dict[Cell, Future[bool]], min_isr: int | None = None) -> None:
        """Wait for those writes that are not to wait for followers."""
        for cell, write in writes.items():
            if cell.acks != ACKS_ALL or cell.replicas == 1 or cell.min_isr == min_isr:
                write.result(PATIENCE_SECONDS)

    def _count(self, acknowledged: dict[Cell, bool]) -> dict[Cell, Tally]:
        self._elect()
        counts = {}
        for cell in CELLS:
            survives = cell.replicas > 1
            if not acknowledged[cell] and survives:
                # What a producer does that has had no answer: it sends again, to the new leader.
                Producer(self._client, cell.topic, acks=cell.acks, compression="none").send(
                    _records(), 0
                )
                acknowledged[cell] = True
            read = read_back(self._client, cell.topic) if survives else []
            counts[cell] = tally(RECORDS if acknowledged[cell] else 0, read)
        self._say("What was not acknowledged was sent again, and all is read back.")
        return counts

    def _elect(self) -> None:
        """Wait for new leaders; where no in-sync replica is left, take one that fell behind."""
        self._await(
            lambda: all(self._leader(cell) != LEADER for cell in CELLS), "the broker to be missed"
        )
        orphans = [cell for cell in CELLS if cell.replicas > 1 and self._leader(cell) == NO_NODE]
        for cell in orphans:
            self._elect_unclean(cell)
        if orphans:
            self._say(
                "Where only the dead broker was in sync, a replica that fell behind is elected "
                "(unclean)."
            )
        for cell in (cell for cell in CELLS if cell.replicas > 1):
            self._await_isr(cell, FOLLOWERS)

    def _elect_unclean(self, cell: Cell) -> None:
        request = elect.ElectLeadersRequest(
            election_type=UNCLEAN,
            topic_partitions=(elect.TopicPartitions(topic=cell.topic, partitions=(0,)),),
            timeout=timedelta(seconds=PRODUCE_SECONDS),
        )
        answer = self._client.ask(request, ElectLeadersResponse)
        if answer.error_code is not ErrorCode.none:
            raise CommandFailed(f"{cell.topic}: {answer.error_code.name}.")

    # -- Watching ----------------------------------------------------------------------------------

    def _leader(self, cell: Cell) -> NodeId:
        (topic,) = self._client.metadata((cell.topic,)).topics
        leader: NodeId = topic.partitions[0].leader_id
        return leader

    def _await_isr(self, cell: Cell, members: Sequence[NodeId]) -> None:
        def is_so() -> bool:
            (topic,) = self._client.metadata((cell.topic,)).topics
            return any(sorted(one.isr_nodes) == sorted(members) for one in topic.partitions)

        self._await(is_so, f"the ISR of {cell.topic} to be {members}")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > limit:
                raise CommandFailed(f"the demo has waited in vain for {what}.")
            time.sleep(POLL_SECONDS)


def _write(cell: Cell, host: str, port: int) -> bool:
    """Send the records once, and say whether a producer takes them for written."""
    try:
        connection = Connection(host, port, PRODUCE_SECONDS)
        try:
            return _send(cell, connection)
        finally:
            connection.close()
    except ConnectionLost:
        return False


def _send(cell: Cell, connection: Connection) -> bool:
    data = produce.PartitionProduceData(index=0, records=build_batch(list(_records())))
    request = produce.ProduceRequest(
        acks=cell.acks,
        timeout=timedelta(seconds=PRODUCE_SECONDS),
        topic_data=(produce.TopicProduceData(name=cell.topic, partition_data=(data,)),),
    )
    if cell.acks == 0:
        connection.tell(request)
        # Answered after the write, which nobody answers: so it has arrived.
        connection.ask(_NOTHING, MetadataResponse)
        return True
    (topic,) = connection.ask(request, ProduceResponse).responses
    return topic.partition_responses[0].error_code is ErrorCode.none


def _records() -> Iterable[Record]:
    now = time.time_ns() // 1_000_000
    return [Record(None, b"%d" % number, now) for number in range(RECORDS)]
