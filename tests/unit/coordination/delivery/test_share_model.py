"""Random histories of a share partition, checked against a model of its promises."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch
from tidelog.coordination.delivery.acquisition import Acquirer, FetchedBatches, OffsetRange
from tidelog.coordination.delivery.in_flight import RecordState
from tidelog.coordination.delivery.share_partition import DeliveryLimits, SharePartition
from tidelog.coordination.delivery.stored_state import StateWrite, StoredState, combine
from tidelog.model.errors import ErrorCode

LOCK_MS = 100
ATTEMPTS = 3
MEMBERS = st.sampled_from(["a", "b", "c"])
ACCEPT, RELEASE, REJECT = 1, 2, 3


class ShareHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.log = [OffsetRange(0, 3), OffsetRange(4, 4), OffsetRange(5, 11)]
        self.stored = StoredState(0, 0)
        self.share = self._lead()
        self.writing: StateWrite | None = None
        self.held: dict[int, tuple[str, int]] = {}
        """The member that holds each acquired record, and the end of its lock."""
        self.asked: dict[int, list[tuple[int, int]]] = {}
        """The records and types of each acknowledgement that is not answered."""
        self.settled: dict[int, int] = {}
        """The type of the successful acceptance or rejection of each record."""
        self.deliveries: Counter[int] = Counter()
        self.not_counted: Counter[int] = Counter()
        """Deliveries that Kafka does not count: a leader died, or a session ended."""
        self.tickets = 0

    def _lead(self) -> SharePartition:
        return SharePartition(self.stored, 0, DeliveryLimits(LOCK_MS, ATTEMPTS, 40))

    @rule(size=st.integers(1, 8))
    def produce(self, size: int) -> None:
        begin = self.log[-1].last + 1
        self.log.append(OffsetRange(begin, begin + size - 1))

    @rule(name=MEMBERS, most=st.integers(1, 12), strict=st.booleans(), batches=st.integers(1, 3))
    def acquire(self, name: str, most: int, strict: bool, batches: int) -> None:
        offset = self.share.next_fetch_offset()
        found = tuple(batch for batch in self.log if batch.last >= offset)[:batches]
        acquirer = Acquirer(name, most, 5, strict)
        acquired = self.share.acquire(acquirer, FetchedBatches(offset, found), self.now)
        if strict:
            assert sum(part.size for part in acquired) <= most
        for part in acquired:
            for record in range(part.first, part.last + 1):
                self._delivered(record, name, part.delivery_count)

    def _delivered(self, record: int, name: str, count: int) -> None:
        assert record not in self.settled, "delivered again after it was accepted or rejected"
        assert record not in self.held, "held by two members"
        assert count <= ATTEMPTS
        self.held[record] = (name, self.now + LOCK_MS)
        self.deliveries[record] += 1
        assert self.deliveries[record] - self.not_counted[record] <= ATTEMPTS

    @precondition(lambda self: self.held)
    @rule(kind=st.sampled_from([ACCEPT, RELEASE, REJECT]), data=st.data())
    def acknowledge(self, kind: int, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(sorted(self.held)))
        name = self.held[record][0]
        mine = {record for record, (owner, _) in self.held.items() if owner == name}
        last = record
        while last + 1 in mine and data.draw(st.booleans()):
            last += 1
        self.tickets += 1
        batch = AcknowledgementBatch(record, last, (kind,))
        if self.share.acknowledge(name, [batch], self.tickets, self.now) is None:
            self.asked[self.tickets] = [(at, kind) for at in range(record, last + 1)]

    @rule(record=st.integers(0, 30), owner=MEMBERS)
    def acknowledge_for_another(self, record: int, owner: str) -> None:
        holder = self.held.get(record)
        if holder is None or holder[0] == owner:
            return
        batch = AcknowledgementBatch(record, record, (ACCEPT,))
        assert self.share.acknowledge(owner, [batch], 0, self.now) is not None

    @rule(name=MEMBERS)
    def end_session(self, name: str) -> None:
        pending = {at for changes in self.asked.values() for at, _ in changes}
        self.share.release(name, 0)
        for record, (owner, _) in list(self.held.items()):
            if owner == name and record not in pending:
                del self.held[record]
                self.not_counted[record] += 1

    @rule(ms=st.integers(1, 150))
    def wait(self, ms: int) -> None:
        self.now += ms
        self._expire()

    def _expire(self) -> None:
        self.share.expire(self.now)
        pending = {at for changes in self.asked.values() for at, _ in changes}
        for record, (_, deadline) in list(self.held.items()):
            if deadline <= self.now and record not in pending:
                del self.held[record]

    @precondition(lambda self: self.asked and self.writing is None)
    @rule()
    def begin_write(self) -> None:
        self.writing = self.share.next_write()

    @precondition(lambda self: self.writing is not None)
    @rule(outcome=st.sampled_from(["stored", "stored", "refused", "stored but not confirmed"]))
    def end_write(self, outcome: str) -> None:
        assert self.writing is not None
        if outcome != "refused":
            self._store(self.writing)
        error = ErrorCode.none if outcome == "stored" else ErrorCode.coordinator_not_available
        self.writing = None
        self._answer(self.share.written(error), error)
        self._expire()

    def _store(self, write: StateWrite) -> None:
        start = write.start_offset
        merged = combine(self.stored.batches, write.batches, start)
        self.stored = StoredState(start, 0, merged)

    def _answer(self, tickets: list[int], error: ErrorCode) -> None:
        for ticket in tickets:
            for record, kind in self.asked.pop(ticket, ()):
                if error is ErrorCode.none:
                    self.held.pop(record, None)
                    if kind != RELEASE:
                        self.settled[record] = kind

    @rule(written=st.booleans())
    def fail_over(self, written: bool) -> None:
        """The leader dies; its last write may or may not have arrived."""
        if self.writing is not None and written:
            self._store(self.writing)
        self.writing = None
        self.asked.clear()
        for record in self.held:
            self.not_counted[record] += 1
        self.held.clear()
        # Records that expired since the last write were counted only by the old leader.
        for record, count in self.deliveries.items():
            self.not_counted[record] = count - self._stored_count(record)
        self.share = self._lead()

    def _stored_count(self, record: int) -> int:
        return next(
            (b.delivery_count for b in self.stored.batches if b.first <= record <= b.last), 0
        )

    @invariant()
    def runs_cover_every_record_in_flight_once(self) -> None:
        expected = self.share.start_offset
        for run in self.share.runs:
            assert run.first == expected
            assert run.first <= run.last
            expected = run.last + 1
        assert expected == self.share.end_offset

    @invariant()
    def no_record_is_skipped(self) -> None:
        """Below the start, every record was settled, or ran out of attempts."""
        for record in range(self.share.start_offset):
            assert record in self.settled or self._may_be_archived(record)

    def _may_be_archived(self, record: int) -> bool:
        # A write that was stored but not confirmed also settles a record.
        return self.deliveries[record] > 0

    def teardown(self) -> None:
        """After the faults end, one member can finish everything that is left."""
        end = self.log[-1].last + 1
        for _ in range(20 * (end + 1)):
            self.writing = self.writing or self.share.next_write()
            if self.writing is not None:
                self.end_write("stored")
            self.now += LOCK_MS
            self._expire()
            if self.share.start_offset == end:
                break
            self.acquire("z", 100, strict=False, batches=len(self.log))
            for run in self.share.runs:
                if run.state is RecordState.ACQUIRED and run.member == "z":
                    self.tickets += 1
                    batch = AcknowledgementBatch(run.first, run.last, (ACCEPT,))
                    self.share.acknowledge("z", [batch], self.tickets, self.now)
                    accepted = [(at, ACCEPT) for at in range(run.first, run.last + 1)]
                    self.asked[self.tickets] = accepted
        assert self.share.start_offset == end
        assert not self.held
        assert sum(self.deliveries.values()) >= end


TestShareHistory = ShareHistory.TestCase
TestShareHistory.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
