"""Which records of a batch stay, for a whole chunk of batches at a time.

There are two engines with the same result. The plain engine needs nothing but Python. The vector
engine (`vectors/`) works on all records of a chunk at once with numpy. It is several times faster,
but numpy takes memory and time to import. Therefore only a pass over a large log uses it, and a
broker without large compacted logs never imports numpy (ADR 26).
"""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from tidelog.log.cleaner.offset_map import OffsetMap
from tidelog.log.cleaner.record_spans import RecordSpan, record_spans
from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_OFFSET, Offset

PLAIN_CHUNK_BYTES = 16 * 1024
"""A chunk of this size takes the plain engine about two milliseconds."""
_VECTOR_ENGINE = "tidelog.log.cleaner.vectors.vector_engine"


class OpenBatch(NamedTuple):
    """The unpacked records of a batch, which has at least one record."""

    base_offset: Offset
    record_count: int
    body: Buffer
    keeps_tombstones: bool = True


class RecordChoice(Protocol):
    """The records of one batch that stay."""

    count: int
    """How many records stay."""
    has_tombstone: bool
    """Whether a record that stays has no value."""
    invalid: int
    """How many records were removed because they have no key."""

    def spans(self) -> tuple[Buffer, Sequence[RecordSpan]]:
        """The records that stay, and the bytes in which they are."""


class RecordEngine(Protocol):
    chunk_bytes: int
    latest_offset: Offset
    """The last offset that the map of last offsets covers. Later records stay."""

    def add(self, batches: Sequence[OpenBatch], first_dirty: Offset) -> int:
        """Add the keys of dirty records; returns how many batches were added before the map was
        full."""

    def choose(self, batches: Sequence[OpenBatch]) -> Sequence[RecordChoice]:
        """Choose the records that stay: those whose key has no later record in the map."""


class PlainChoice:
    __slots__ = ("_body", "_kept", "count", "has_tombstone", "invalid")

    def __init__(self, body: Buffer, kept: Sequence[RecordSpan], invalid: int) -> None:
        self._body = body
        self._kept = kept
        self.count = len(kept)
        self.has_tombstone = not all(span.has_value for span in kept)
        self.invalid = invalid

    def spans(self) -> tuple[Buffer, Sequence[RecordSpan]]:
        return self._body, self._kept


class PlainEngine:
    """Looks at one record after the other."""

    chunk_bytes = PLAIN_CHUNK_BYTES

    def __init__(self, slots: int, load_percent: int) -> None:
        self._map = OffsetMap(slots, load_percent)
        self.latest_offset: Offset = NO_OFFSET

    def add(self, batches: Sequence[OpenBatch], first_dirty: Offset) -> int:
        put = self._map.put
        for number, batch in enumerate(batches):
            base = batch.base_offset
            for _, delta, key, _, _, _, _, _ in record_spans(batch.body, batch.record_count):
                offset = base + delta
                if key is not None and offset >= first_dirty and not put(key, offset):
                    return number
        return len(batches)

    def choose(self, batches: Sequence[OpenBatch]) -> Sequence[RecordChoice]:
        return [self._chosen(batch) for batch in batches]

    def _chosen(self, batch: OpenBatch) -> PlainChoice:
        base, keeps_tombstones = batch.base_offset, batch.keeps_tombstones
        latest, last_offset_of = self.latest_offset, self._map.get
        body, kept, invalid = batch.body, [], 0
        for span in record_spans(body, batch.record_count):
            _, delta, key, has_value, _, _, _, _ = span
            offset = base + delta
            if offset > latest:
                kept.append(span)
            elif key is None:
                invalid += 1
            elif (has_value or keeps_tombstones) and offset >= last_offset_of(key):
                kept.append(span)
        return PlainChoice(body, kept, invalid)


def new_engine(slots: int, load_percent: int, *, is_large: bool) -> RecordEngine:
    """The engine for a pass. Allocates memory and may import numpy, so a job calls this."""
    if is_large:
        try:
            engine: RecordEngine = import_module(_VECTOR_ENGINE).VectorEngine(slots, load_percent)
        except ImportError:
            pass  # numpy is not installed
        else:
            return engine
    return PlainEngine(slots, load_percent)
