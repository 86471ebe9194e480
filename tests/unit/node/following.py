"""A follower and its fetcher; the test acts as the leader."""

from collections.abc import Sequence
from uuid import UUID

from tests.unit.log.support import NOW, new_log, replicated

from tidelog.config.settings import BrokerSettings
from tidelog.log.config import LogConfig
from tidelog.log.results import ProducerSequence
from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.outbound import Connect, Outbound, Send
from tidelog.node.clock import Clock
from tidelog.node.followers.replica_fetcher import VERSION, ReplicaFetcher
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Peers
from tidelog.node.ready import ReadyQueue
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    decode_request,
    encode_response,
)
from tidelog.protocol.messages.messages import decode_request_header
from tidelog.replication.isr.leader import ProposeIsr

TOPIC_ID = UUID(int=7)
SESSION = 99
API_VERSIONS = 18
LEADER, ME = 1, 2


class Owner:
    """The node that owns the replicas; a flush ends when the test calls `finish_flush`."""

    def __init__(self) -> None:
        self.flushes: list[tuple[Replica, int]] = []
        self.proposals: list[ProposeIsr] = []
        self.cuts: list[tuple[int, int]] = []
        self.removals: list[ProducerSequence] = []
        self.dead: set[int] = set()

    def start_flush(self, replica: Replica) -> None:
        _, up_to = replica.log.begin_flush(NOW)
        replica.flushing = True
        self.flushes.append((replica, up_to))

    def propose_isr(self, replica: Replica, proposal: ProposeIsr) -> None:
        self.proposals.append(proposal)

    def is_alive(self, broker: int) -> bool:
        return broker not in self.dead

    def truncated(self, replica: Replica, end: int, high_watermark: int) -> None:
        self.cuts.append((end, high_watermark))

    def removed(self, replica: Replica, batches: Sequence[ProducerSequence]) -> None:
        self.removals.extend(batches)

    def finish_flush(self) -> Replica:
        replica, up_to = self.flushes.pop(0)
        replica.flushed(up_to)
        return replica


class Following:
    """One fetcher; `asked` is the unanswered request."""

    def __init__(self, **properties: str) -> None:
        self.clock, self.ready = Clock(NOW), ReadyQueue()
        self.owner = Owner()
        self.failures: list[OSError] = []
        self._sent: list[Outbound] = []
        self._waiting: list[tuple[int, FetchRequest]] = []
        peers = Peers(self.clock, self.ready, self._sent.append)
        self.channel = peers.channel("leader", 9092, lambda: None)
        settings = BrokerSettings.from_properties(
            {"node.id": str(ME), "process.roles": "broker", "log.dirs": "data"}
            | {"listeners": "PLAINTEXT://me:9092", "controller.listener.names": "CONTROLLER"}
            | {"controller.quorum.voters": "1@leader:9093"}
            | {key.replace("_", "."): value for key, value in properties.items()}
        )
        self.losses: list[bool] = []
        self.nudges = 0
        """The number of requests that were sent only to make the leader answer the held fetch."""
        self.fetcher = ReplicaFetcher(
            settings,
            self.clock,
            self.channel,
            lambda: 5,
            lambda partition, failure: self.failures.append(failure),
            Throttles(ME, self.clock),
            lost=lambda: self.losses.append(True),
            found=lambda: self.losses.append(False),
        )

    def replica(self, partition: int = 0, config: LogConfig | None = None) -> Replica:
        log = new_log() if config is None else new_log(config)
        name = TopicPartition("orders", partition)
        return Replica(name, TOPIC_ID, log, 0, self.clock, self.owner)

    @property
    def asked(self) -> FetchRequest | None:
        """The unanswered request, if there is one."""
        self._read()
        return self._waiting[-1][1] if self._waiting else None

    def asked_for(self) -> dict[int, FetchPartition]:
        asked = self.asked
        assert asked is not None, "it does not ask"
        return {one.partition: one for _, partitions in asked.topics for one in partitions}

    def forgotten(self) -> list[int]:
        asked = self.asked
        assert asked is not None, "it does not ask"
        return [one for _, partitions in asked.forgotten for one in partitions]

    def answer(
        self,
        *partitions: PartitionFetched,
        error: ErrorCode = ErrorCode.none,
        session: int = SESSION,
    ) -> None:
        self._read()
        correlation_id, _ = self._waiting.pop()
        response = FetchResponse([(TOPIC_ID, list(partitions))], error=error, session_id=session)
        frame = b"".join(
            bytes(chunk) for chunk in encode_response(VERSION, correlation_id, response)
        )
        self.ready.run(self.channel.received, memoryview(frame)[4:])

    def answer_garbage(self) -> None:
        """Send an unreadable answer."""
        self._read()
        correlation_id, _ = self._waiting.pop()
        self.ready.run(
            self.channel.received, memoryview(correlation_id.to_bytes(4, "big") + b"\0garbage")
        )

    def lose_connection(self) -> None:
        self._waiting.clear()
        self.ready.run(self.channel.disconnected)

    def advance(self, ms: int) -> None:
        self.clock.now += ms
        self.clock.timers.fire(self.clock.now, self.ready.run)

    def _read(self) -> None:
        sent, self._sent[:] = list(self._sent), []
        for outbound in sent:
            if isinstance(outbound, Connect):
                self.ready.run(self.channel.connected)
                self._read()
            elif isinstance(outbound, Send):
                frame = memoryview(b"".join(bytes(chunk) for chunk in outbound.chunks))[4:]
                header = decode_request_header(frame)
                if header.api_key == API_VERSIONS:
                    self.nudges += 1
                    continue
                request = decode_request(VERSION, frame, header.position)
                self._waiting.append((header.correlation_id, request))


def fetched(
    partition: int = 0,
    *,
    records: memoryview | None = None,
    error: ErrorCode = ErrorCode.none,
    high_watermark: int = 0,
    log_start: int = 0,
    diverging: EpochEnd | None = None,
) -> PartitionFetched:
    return PartitionFetched(
        partition,
        error,
        high_watermark,
        high_watermark,
        log_start,
        records if records is not None else memoryview(b""),
        None,
        -1,
        diverging,
    )


def records(base_offset: int, epoch: int, count: int = 1) -> memoryview:
    return replicated(base_offset, epoch, count)
