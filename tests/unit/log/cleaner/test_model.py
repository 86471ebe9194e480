"""The cleaner against a model: any history, any number of passes, and crashes between all steps.

F78, F79, F80 and F81 are the faults that the model would show.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.log.cleaner.compacting import (
    COMPACTED,
    DAY,
    MIXED,
    ORDERS,
    Stored,
    begin,
    committed,
    end_transaction,
    opened,
    seal,
    steps,
    uncommitted,
    write,
)
from tests.unit.log.support import NOW, flush

from tidelog.protocol.records.records import Record
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS = [b"a", b"b", b"c", None]


class Put(NamedTuple):
    keys: list[int]
    has_values: list[bool]
    codec: int
    producer: int


class End(NamedTuple):
    producer: int
    is_abort: bool


class Clean(NamedTuple):
    """A pass. After some steps records are appended, and later the process may die."""

    pause_ms: int
    steps_before_append: int
    steps_before_death: int | None
    is_power_loss: bool
    seed: int


puts = st.builds(
    Put,
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, 4),
    st.integers(0, 3),
)
ends = st.builds(End, st.integers(1, 2), st.booleans())
cleans = st.builds(
    Clean,
    st.sampled_from([0, DAY // 2, DAY, 2 * DAY]),
    st.integers(0, 12),
    st.none() | st.integers(0, 25),
    st.booleans(),
    st.integers(0, 1 << 20),
)
histories = st.lists(st.one_of(puts, puts, puts, ends, cleans), min_size=4, max_size=30)


@dataclass
class Entry:
    stored: Stored
    producer: int | None
    """The producer of a transaction that is still open."""
    is_aborted: bool = False
    first_pass_at: int | None = None
    """The time of the first pass that may have given the record a delete horizon."""


@dataclass
class Model:
    """A log with a cleaner, and every record that was ever appended to it."""

    disk: SimDisk = field(default_factory=SimDisk)
    entries: list[Entry] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    wall: int = NOW
    latest_pass_at: int = NOW

    def __post_init__(self) -> None:
        self.directory, self.log = opened(self.disk, MIXED)

    # -- operations

    def put(self, op: Put) -> None:
        """Producer 0 is not idempotent, 1 and 2 write in transactions, 3 is idempotent."""
        producer = op.producer if op.producer else -1
        is_transactional = producer in (1, 2)
        sequence = self.sequences.get(producer, 0)
        records = [
            Record(KEYS[key], b"v" * 30 if has_value else None, NOW + len(self.entries) + n)
            for n, (key, has_value) in enumerate(zip(op.keys, op.has_values, strict=False))
        ]
        first = write(
            self.log,
            records,
            producer=producer,
            sequence=sequence,
            transactional=is_transactional,
            compression=CODECS[op.codec],
        ).base_offset
        if producer >= 0:
            self.sequences[producer] = sequence + len(records)
        for n, record in enumerate(records):
            stored = Stored(first + n, record.key, record.value, record.timestamp)
            self.entries.append(Entry(stored, producer if is_transactional else None))

    def end(self, op: End) -> None:
        if not any(entry.producer == op.producer for entry in self.entries):
            return
        end_transaction(self.log, op.producer, 0, abort=op.is_abort)
        for entry in self.entries:
            if entry.producer == op.producer:
                entry.producer, entry.is_aborted = None, op.is_abort

    def clean(self, op: Clean) -> None:
        before = self.log.log_end_offset
        seal(self.log)
        self._learn_filler(before)
        flush(self.log)
        self.directory.write_checkpoints({}, durable=True)
        durable_end = self.log.log_end_offset
        self.wall += op.pause_ms
        self.latest_pass_at = max(self.latest_pass_at, self.wall)
        self.log.update_config(COMPACTED)
        cleaned_to = self.directory.checkpoints.cleaned_to(ORDERS)
        if not self.log.find_cleanable(cleaned_to, durable_end, self.wall).dirty_bytes:
            self.log.update_config(MIXED)
            self.check()
            return
        cleaning = begin(self.log, cleaned_to, self.wall)
        for entry in self.entries:
            if entry.first_pass_at is None and entry.stored.offset < cleaning.cleanable.end:
                entry.first_pass_at = self.wall
        running = steps(cleaning)
        for _ in islice(running, op.steps_before_append):
            pass
        self.log.update_config(MIXED)
        self.put(Put([0, 1], [True, False], 0, 0))
        self.log.update_config(COMPACTED)
        is_complete = True
        for number, _ in enumerate(running):
            if number == op.steps_before_death:
                is_complete = False
                break
        if is_complete:
            self.directory.checkpoints.note_cleaned_to(ORDERS, cleaning.cleaned_to)
            self._check_effect(cleaning.cleaned_to)
        if op.steps_before_death is not None:
            self._die(op, durable_end)
        self.log.update_config(MIXED)
        self.check()

    def _learn_filler(self, first: int) -> None:
        known = {entry.stored.offset for entry in self.entries}
        for stored in uncommitted(self.log):
            if stored.offset >= first and stored.offset not in known:
                self.entries.append(Entry(stored, None))

    def _die(self, op: Clean, durable_end: int) -> None:
        if op.is_power_loss:
            self.disk.crash(SeededDice(op.seed))
        else:
            self.disk.kill()
        self.directory, self.log = opened(self.disk, COMPACTED)
        assert self.log.recovery.damages == (), self.log.recovery.notes
        end = self.log.log_end_offset
        assert end >= durable_end
        self.entries = [entry for entry in self.entries if entry.stored.offset < end]
        found = {one.producer_id: one.last_sequence + 1 for one in self.log.active_producers()}
        for producer, sequence in self.sequences.items():
            assert found[producer] == sequence
        left = [
            name for name in self.disk.list(str(ORDERS)) if name.endswith((".cleaned", ".swap"))
        ]
        assert left == []

    # -- checks

    def check(self) -> None:
        stable = self.log.last_stable_offset(self.log.log_end_offset)
        read, read_committed = uncommitted(self.log), committed(self.log)
        originals = {entry.stored for entry in self.entries}
        assert set(read) <= originals
        assert len(set(read)) == len(read)
        decided = [one for one in self.entries if not one.is_aborted and one.producer is None]
        stable_records = [one.stored for one in decided if one.stored.offset < stable]
        assert _last_values(read_committed) == _last_values(stable_records)
        for entry in {one.stored.key: one for one in decided}.values():
            key, value = entry.stored.key, entry.stored.value
            if key is None or (value is None and self._may_be_gone(entry)):
                continue
            assert entry.stored in read
            assert entry.stored in read_committed or entry.stored.offset >= stable

    def _may_be_gone(self, tombstone: Entry) -> bool:
        first = tombstone.first_pass_at
        return first is not None and self.latest_pass_at >= first + DAY

    def _check_effect(self, cleaned_to: int) -> None:
        cleaned = [one for one in uncommitted(self.log) if one.offset < cleaned_to]
        keys = [one.key for one in cleaned]
        assert None not in keys
        assert len(set(keys)) == len(keys)
        aborted = {entry.stored for entry in self.entries if entry.is_aborted}
        assert not aborted & set(cleaned)


def _last_values(records: list[Stored]) -> dict[bytes, bytes]:
    last = {one.key: one.value for one in records if one.key is not None}
    return {key: value for key, value in last.items() if value is not None}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories)
def test_f79_any_history_reads_as_the_model_after_any_passes_and_crashes(
    history: list[Put | End | Clean],
) -> None:
    model = Model()
    for op in history:
        match op:
            case Put():
                model.put(op)
            case End():
                model.end(op)
            case Clean():
                model.clean(op)
    model.clean(Clean(DAY, 0, None, False, 0))
    model.clean(Clean(2 * DAY, 3, 40, True, 1))
