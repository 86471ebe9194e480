"""Two leaders for comparison: one uses fetch sessions, the other reads every partition each time.

Both leaders get the same appends, fetches, leader changes and times. The second leader defines the
correct answer of a session: it reads all partitions and leaves out those that have not changed.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from tests.unit.api.support import CountingDice, broker, image, partition, request, topic
from tests.unit.log.support import NOW, SMALL, batch, marker, new_log
from tests.unit.node.following import Owner

from tidelog.api.records import fetch
from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.log.results import AppendOrigin
from tidelog.model.disk import FileSlice
from tidelog.model.effects import (
    AppendBatches,
    FetchBatches,
    FetchResult,
    PartitionAppend,
    PartitionFetch,
    Reader,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.events.counters import Counters
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.append_checks import AppendChecks
from tidelog.node.partitions.cold_reads import ColdReads
from tidelog.node.partitions.fetches import Fetches
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.read_replicas import ReadReplicas
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    encode_response,
)
from tidelog.protocol.records.batch import iterate
from tidelog.replication.isr.leader import IsrAgreed, LagChecked, LeaderEvent
from tidelog.replication.rules import ISR

ME, FOLLOWERS = 1, (2, 3)
TOPIC_ID = UUID(int=0xAB)
VERSION = 17
DURABLE = 3
"""The partition whose records are flushed before they are acknowledged."""
PARTITIONS = 4


class Leader:
    """Leads every partition, and keeps its answers and its ISR proposals for comparison."""

    def __init__(self) -> None:
        self.clock, self.owner = Clock(NOW), Owner()
        self.current = CurrentImage()
        jobs = Jobs(lambda outbound: None, self.clock)
        self.partitions = Partitions(
            self.clock,
            self.current,
            lambda *failure: None,
            Counters(),
            ReadReplicas(),
            Throttles(ME, self.clock),
            AppendChecks(jobs, lambda conn: lambda: None),
        )
        self.fetches = Fetches(self.partitions, self.clock, Counters(), ColdReads(jobs))
        self.answers: list[tuple[int, bytes]] = []
        self.last: dict[int, FetchResponse] = {}
        """Reader -> its newest answer; a reader whose fetch is waiting has no entry."""
        self.acks: list[Any] = []
        self._ready: deque[tuple[Callable[[Any], None], Any]] = deque()
        """Answered fetches, whose handlers run at the end of the step, as in a node."""
        placed = [partition(ME, (ME, *FOLLOWERS)) for _ in range(PARTITIONS)]
        self.image = image(topic("orders", TOPIC_ID, *placed))
        self.image = replace(self.image, brokers={id: broker(id) for id in (ME, *FOLLOWERS)})
        self.current.image = self.image
        self.partition_epoch = 0
        for index in range(PARTITIONS):
            config = replace(SMALL, flush_messages=1) if index == DURABLE else SMALL
            name = TopicPartition("orders", index)
            self.partitions.add(Replica(name, TOPIC_ID, new_log(config), 0, self.clock, self.owner))
            self.lead(index, 1)

    def replica(self, index: int) -> Replica:
        found = self.partitions.get(TopicPartition("orders", index))
        assert found is not None
        return found

    # -- changes of partitions ---------------------------------------------------------------------

    def lead(self, index: int, epoch: int) -> None:
        self.replica(index).lead(ME, epoch, self._agreed((ME, *FOLLOWERS)), ISR)

    def resign(self, index: int) -> None:
        self.replica(index).resign(ErrorCode.not_leader_or_follower)

    def agree(self, index: int, isr: tuple[int, ...]) -> None:
        self.partition_epoch += 1
        self.step(index, self._agreed(isr))

    def _agreed(self, isr: tuple[int, ...]) -> IsrAgreed:
        return IsrAgreed(frozenset(isr), frozenset({ME, *FOLLOWERS}), self.partition_epoch, 1)

    def step(self, index: int, event: LeaderEvent) -> None:
        if self.replica(index).leader is not None:
            self.replica(index).step(event)

    def check_lag(self, max_lag: int) -> None:
        for index in range(PARTITIONS):
            self.step(index, LagChecked(max_lag))

    def append(
        self, indexes: list[int], records: list[memoryview], is_marker: bool = False
    ) -> None:
        appends = [
            PartitionAppend(TopicPartition("orders", index), memoryview(bytearray(data)))
            for index, data in zip(indexes, records, strict=True)
        ]
        origin = AppendOrigin.COORDINATOR if is_marker else AppendOrigin.CLIENT
        result = self.partitions.append(AppendBatches(appends, -1, 900), self.acks.append, origin)
        if result is not PARKED:
            self.acks.append(result)

    def write_markers(self, indexes: list[int]) -> None:
        """Append one marker after the other, in one step, as WriteTxnMarkers does."""
        for index in indexes:
            replica = self.replica(index)
            if replica.leader is not None:
                data = memoryview(bytearray(marker(9, 0, abort=True)))
                self.partitions.append_own(replica, data, AppendOrigin.COORDINATOR)

    def advance_start(self, index: int) -> None:
        replica = self.replica(index)
        if replica.leader is not None:
            replica.moved()
            replica.log.advance_log_start(replica.high_watermark)

    def finish_flush(self) -> None:
        if self.owner.flushes:
            self.owner.finish_flush()

    def pass_time(self, duration: int) -> None:
        for _ in range(duration // 50):
            self.clock.now += 50
            self.clock.timers.fire(self.clock.now, ReadyQueue().run)
            self.finish_step()

    # -- fetches and answers -----------------------------------------------------------------------

    def ask(self, reader: int, message: FetchRequest) -> None:
        raise NotImplementedError

    def later(self, go_on: Callable[[Any], None]) -> Callable[[Any], None]:
        """A callback that runs `go_on` at the end of the step."""
        return lambda result: self._ready.append((go_on, result))

    def finish_step(self) -> None:
        while self._ready:
            go_on, result = self._ready.popleft()
            go_on(result)

    def _answered(self, reader: int, response: FetchResponse) -> None:
        self.last[reader] = response
        # Leave out the current leader, which comes from the image and not from the read.
        bare = FetchResponse(
            [
                (ref, [row._replace(current_leader=None) for row in rows])
                for ref, rows in response.topics
            ],
            response.error,
        )
        chunks = encode_response(VERSION, 7, bare)
        self.answers.append((reader, b"".join(_bytes(chunk) for chunk in chunks)))

    # -- state that must be equal ------------------------------------------------------------------

    def known(self) -> list[Any]:
        """The state of each partition, and everything that the leader knows about its followers."""
        rows: list[Any] = []
        for replica in self.partitions:
            replica.refresh_progress()
            row = (replica.high_watermark, replica.log.log_start_offset, replica.visible_end)
            leader = replica.leader
            if leader is not None:
                progress = {id: leader._progress[id] for id in FOLLOWERS}
                rows.append((row, leader.isr, {id: _fields(one) for id, one in progress.items()}))
            else:
                rows.append(row)
        return rows


class SessionLeader(Leader):
    """The real handler, with fetch sessions."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions = FetchSessions(10, CountingDice())
        self._epochs: dict[int, tuple[int, int]] = {}
        self.looked_at = 0

    def ask(self, reader: int, message: FetchRequest) -> None:
        id, epoch = self._epochs.get(reader, (0, 0))
        asked = request(
            replace(message, session_id=id, session_epoch=epoch),
            VERSION,
            image=self.image,
            now=self.clock.now,
            fetch_sessions=self._sessions,
        )
        self.last.pop(reader, None)
        handling = fetch.handle(asked)

        def go_on(result: Any) -> None:
            try:
                effect = handling.send(result)
            except StopIteration as done:
                self._epochs[reader] = (done.value.session_id, epoch + 1)
                self._answered(reader, done.value)
                return
            self.looked_at += len(effect.reads)
            found = self.fetches.fetch(effect, self.later(go_on), reader)
            if found is not PARKED:
                go_on(found)

        go_on(None)


class WalkingLeader(Leader):
    """A handler without sessions: it reads every partition for every answer."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[int, OrderedDict[int, list[Any]]] = {}

    def ask(self, reader: int, message: FetchRequest) -> None:
        is_first = reader not in self._asked
        asked = self._asked.setdefault(reader, OrderedDict())
        for _, fetches in message.topics:
            for one in fetches:
                asked.setdefault(one.partition, [None, -1, -1])[0] = one
        for _, indexes in message.forgotten:
            for index in indexes:
                asked.pop(index, None)
        if not asked:
            del self._asked[reader]
        self.last.pop(reader, None)
        effect = FetchBatches(
            [_read(one) for one, _, _ in asked.values()],
            min(message.min_bytes, message.max_bytes),
            message.max_bytes,
            message.max_wait_ms if asked else 0,
            message.isolation_level == 1,
            message.replica_id,
            message.replica_epoch,
            reader=Reader("", "PLAINTEXT") if message.replica_id < 0 else None,
        )
        order = list(asked)

        def done(results: list[FetchResult]) -> None:
            rows = []
            for index, result in zip(order, results, strict=True):
                is_news = self._remember(asked, index, result, is_first)
                if is_news or is_first:
                    rows.append(_row(index, result))
            self._answered(reader, FetchResponse([(TOPIC_ID, rows)] if rows else []))

        found = self.fetches.fetch(effect, self.later(done), reader)
        if found is not PARKED:
            done(found)

    def _remember(
        self, asked: OrderedDict[int, list[Any]], index: int, result: FetchResult, is_first: bool
    ) -> bool:
        sent = asked[index]
        is_well = result.error is ErrorCode.none
        now_sent = [result.high_watermark, result.log_start_offset]
        is_news = (
            not is_well
            or result.records is not None
            or result.diverging is not None
            or sent[1:] != now_sent
        )
        sent[1:] = [result.high_watermark if is_well else -1, result.log_start_offset]
        if result.records is not None and not is_first:
            asked.move_to_end(index)
        return is_news


def next_offsets(response: FetchResponse) -> dict[int, int]:
    """The offsets from which a reader continues after this answer."""
    ends: dict[int, int] = {}
    for _, rows in response.topics:
        for row in rows:
            if isinstance(row.records, FileSlice):
                *_, (_, header) = iterate(_bytes(row.records))
                ends[row.partition] = header.next_offset
    return ends


def fetching(reader: int, offset: int, index: int, epoch: int, last: int) -> FetchPartition:
    follower = reader in FOLLOWERS
    return FetchPartition(index, epoch, offset, last if follower else -1, -1, 700)


def records(count: int) -> memoryview:
    return batch(count)


def _bytes(chunk: Any) -> bytes:
    if isinstance(chunk, FileSlice):
        return chunk.file.read(chunk.position, chunk.length)
    return bytes(chunk)


def _read(one: FetchPartition) -> PartitionFetch:
    return PartitionFetch(
        TopicPartition("orders", one.partition),
        one.fetch_offset,
        one.max_bytes,
        one.current_leader_epoch,
        one.last_fetched_epoch,
        one.log_start_offset,
    )


def _row(index: int, result: FetchResult) -> PartitionFetched:
    return PartitionFetched(
        index,
        result.error,
        result.high_watermark,
        result.last_stable_offset,
        result.log_start_offset,
        result.records,
        result.aborted,
        result.preferred_read_replica,
        result.diverging,
    )


def _fields(progress: Any) -> tuple[Any, ...]:
    return tuple(getattr(progress, name) for name in type(progress).__slots__)
