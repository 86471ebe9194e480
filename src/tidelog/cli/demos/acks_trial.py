"""One trial of `tidelog demo acks`: kills a leader that holds records which its followers lack.

Each combination of acks, replicas and min.insync.replicas has its own topic. One broker leads all
topics. The network proxy holds back the followers' fetches, so only the leader gets the records.
Then the leader is killed and stays down. Depending on the settings, the controller elects an
in-sync replica, the trial elects a replica that fell behind, or no replica is left. At the end, the
trial compares the records that it can read with the acknowledged records.

On a busy machine, brokers may miss heartbeats. A leader or an ISR may then change before the kill.
If that happens, the trial proves nothing and is repeated.
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

from tidelog.cli.demos.demo_load import Tally, read_back, tally
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.connection import BrokerConnection, ConnectionLost
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.clusters.local_cluster import BROKER_LISTENER
from tidelog.clusters.throwaway_cluster import ThrowawayCluster
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Record, build_batch

BROKERS = (1, 2, 3)
LEADER, FOLLOWERS = BROKERS[0], BROKERS[1:]
RECORDS = 100
LAG_TIME_MS = 1_000
ANSWER_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
ATTEMPTS = 5
POLL_SECONDS = 0.02
PRODUCE_SECONDS = 300
"""The request timeout of a producer. It is longer than a trial, so that no write times out."""
UNCLEAN = 1
"""The election type of an unclean election in ElectLeaders."""

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


class Disturbed(Exception):
    """A leader or an ISR has changed before the kill. The message describes the change."""


class AcksTrial:
    """Kills one leader. With `has_lagged`, its followers leave the ISR before the kill."""

    def __init__(self, say: Callable[[str], None], *, has_lagged: bool) -> None:
        self._say = say
        self._has_lagged = has_lagged

    def run(self) -> dict[Cell, Tally]:
        for _ in range(ATTEMPTS):
            try:
                return self._attempt()
            except Disturbed as disturbed:
                self._say(f"{disturbed}. This machine is busy, so the trial is repeated.")
        raise UserError(f"this machine is too busy: {ATTEMPTS} trials were disturbed.")

    def _attempt(self) -> dict[Cell, Tally]:
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
            with admin.topic_may_exist():
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
        self._say(f"Broker {LEADER} leads {len(CELLS)} topics, and all replicas are in sync.")

    def _kill(self, cluster: ThrowawayCluster) -> dict[Cell, Tally]:
        cluster.network.cut(FOLLOWERS, [LEADER], BROKER_LISTENER)
        cluster.network.cut([LEADER], FOLLOWERS, BROKER_LISTENER)
        self._say(f"The followers cannot fetch; {RECORDS} records are sent to each topic.")
        with ThreadPoolExecutor(len(CELLS)) as pool:
            leader = cluster.address(LEADER)
            writes = {cell: pool.submit(_write, cell, *leader) for cell in CELLS}
            try:
                self._await_the_moment(writes)
            finally:
                cluster.kill(LEADER)  # this also ends the writes that wait for followers
            self._say(f"kill -9 of broker {LEADER}, which stays down.")
        return self._count({cell: write.result() for cell, write in writes.items()})

    def _await_the_moment(self, writes: dict[Cell, Future[bool]]) -> None:
        """Wait until only the leader has the records, and the ISR is as this trial requires."""
        self._await_answers(writes)
        if self._has_lagged:
            for cell in (cell for cell in CELLS if cell.replicas > 1):
                self._await_isr(cell, [LEADER], led_by=LEADER)
            self._say(f"The followers have left the ISR; only broker {LEADER} is in it.")
            self._await_answers(writes, min_isr=1)
        for cell in CELLS:
            has_left = self._has_lagged and cell.replicas > 1
            if self._isr(cell, LEADER) != ([LEADER] if has_left else [*BROKERS[: cell.replicas]]):
                raise Disturbed(f"The ISR of {cell.topic} has changed")

    def _await_answers(self, writes: dict[Cell, Future[bool]], min_isr: int | None = None) -> None:
        """Wait for the answers to the writes that need no follower."""
        for cell, write in writes.items():
            needs_nobody = cell.acks != ACKS_ALL or cell.replicas == 1 or cell.min_isr == min_isr
            if needs_nobody and not write.result(PATIENCE_SECONDS):
                raise Disturbed(f"A write to {cell.topic} was refused")

    def _count(self, acknowledged: dict[Cell, bool]) -> dict[Cell, Tally]:
        self._elect()
        counts = {}
        for cell in CELLS:
            survives = cell.replicas > 1
            if not acknowledged[cell] and survives:
                # If a producer gets no answer, it sends the records again, to the new leader.
                Producer(self._client, cell.topic, acks=cell.acks, compression="none").send(
                    _records(), 0
                )
                acknowledged[cell] = True
            read = read_back(self._client, cell.topic) if survives else []
            counts[cell] = tally(RECORDS if acknowledged[cell] else 0, read)
        self._say("Unacknowledged records were sent again, and all records were read back.")
        return counts

    def _elect(self) -> None:
        """Wait for new leaders. If a topic has no in-sync replica, start an unclean election."""
        self._await(lambda: all(self._leader(cell) != LEADER for cell in CELLS), "new leaders")
        orphans = [cell for cell in CELLS if cell.replicas > 1 and self._leader(cell) == NO_NODE]
        for cell in orphans:
            self._elect_unclean(cell)
        if orphans:
            self._say("An unclean election gives a leader to topics without an in-sync replica.")
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
            raise UserError(f"{cell.topic}: {answer.error_code.name}.")

    # -- Observing the cluster ---------------------------------------------------------------------

    def _leader(self, cell: Cell) -> NodeId:
        (topic,) = self._client.metadata((cell.topic,)).topics
        return next((one.leader_id for one in topic.partitions), NO_NODE)

    def _isr(self, cell: Cell, led_by: NodeId | None = None) -> list[NodeId]:
        """The members of the ISR; raises `Disturbed` if `led_by` is not the leader."""
        (topic,) = self._client.metadata((cell.topic,)).topics
        for one in topic.partitions:
            if led_by not in (None, one.leader_id):
                raise Disturbed(f"Broker {led_by} has lost the lead of {cell.topic}")
        return sorted(node for one in topic.partitions for node in one.isr_nodes)

    def _await_isr(
        self, cell: Cell, members: Sequence[NodeId], led_by: NodeId | None = None
    ) -> None:
        self._await(
            lambda: self._isr(cell, led_by) == sorted(members),
            f"the ISR of {cell.topic} to be {members}",
        )

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > limit:
                raise UserError(f"the demo has timed out waiting for {what}.")
            time.sleep(POLL_SECONDS)


def _write(cell: Cell, host: str, port: int) -> bool:
    """Send the records once, and return whether a producer would count them as acknowledged."""
    try:
        connection = BrokerConnection(host, port, PRODUCE_SECONDS)
        try:
            return _send(cell, connection)
        finally:
            connection.close()
    except ConnectionLost:
        return False


def _send(cell: Cell, connection: BrokerConnection) -> bool:
    data = produce.PartitionProduceData(index=0, records=build_batch(list(_records())))
    request = produce.ProduceRequest(
        acks=cell.acks,
        timeout=timedelta(seconds=PRODUCE_SECONDS),
        topic_data=(produce.TopicProduceData(name=cell.topic, partition_data=(data,)),),
    )
    if cell.acks == 0:
        connection.tell(request)
        # A write with acks=0 has no answer. The answer to a later request on the same connection
        # proves that the write has arrived.
        connection.ask(_NOTHING, MetadataResponse)
        return True
    (topic,) = connection.ask(request, ProduceResponse).responses
    return topic.partition_responses[0].error_code is ErrorCode.none


def _records() -> Iterable[Record]:
    now = time.time_ns() // 1_000_000
    return [Record(None, b"%d" % number, now) for number in range(RECORDS)]
