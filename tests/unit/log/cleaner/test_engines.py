"""The two engines of the cleaner: the same choice, and numpy only where it is worth its memory."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.cleaner.filtering import open_batch
from tidelog.log.cleaner.record_choice import (
    OpenBatch,
    PlainEngine,
    RecordChoice,
    RecordEngine,
    new_engine,
)
from tidelog.log.cleaner.vectors.key_hashes import PADDING, key_hashes
from tidelog.log.cleaner.vectors.vector_engine import VectorEngine
from tidelog.protocol.records.batch import read_header
from tidelog.protocol.records.records import Record, build_batch
from tidelog.protocol.records.unpacking import UnreadableRecords

NOW = 1_700_000_000_000
KEYS = st.one_of(
    st.none(),
    st.binary(max_size=3),
    st.sampled_from([b"k" * size for size in (7, 8, 9, 16, 255, 256, 300)]),
)
VALUES = st.one_of(st.none(), st.binary(max_size=200))
TIMES = st.one_of(st.integers(NOW, NOW + 5), st.integers(0, 1 << 45))
RECORDS = st.tuples(KEYS, VALUES, TIMES).map(lambda parts: Record(*parts))
BATCHES = st.lists(st.lists(RECORDS, min_size=1, max_size=8), min_size=1, max_size=8)


def opened(batches: list[list[Record]]) -> list[OpenBatch]:
    found, offset = [], 1_000
    for number, records in enumerate(batches):
        packed = memoryview(build_batch(records))
        header = read_header(packed)._replace(base_offset=offset)
        found.append(open_batch(header, packed, number % 3 > 0))
        offset += 2 * len(records)
    return found


def described(choice: RecordChoice) -> object:
    body, spans = choice.spans()
    kept = [
        (
            one.timestamp_delta,
            one.offset_delta,
            bytes(body[one.start : one.end]),
            one.attributes - one.start,
            one.rest - one.start,
        )
        for one in spans
    ]
    return choice.count, choice.has_tombstone, choice.invalid, kept


@given(BATCHES, st.integers(0, 40), st.integers(0, 40), st.integers(3, 60))
def test_both_engines_choose_the_same_records(
    batches: list[list[Record]], dirty_from: int, covered: int, slots: int
) -> None:
    chunk = opened(batches)
    results = []
    for engine in (PlainEngine(slots, 90), VectorEngine(slots, 90)):
        added = engine.add(chunk, 1_000 + dirty_from)
        engine.latest_offset = 1_000 + covered
        results.append((added, [described(one) for one in engine.choose(chunk)]))
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", [PlainEngine, VectorEngine])
@pytest.mark.parametrize("cut", [1, 3, 20])
def test_broken_records_are_unreadable_for_both(kind: type, cut: int) -> None:
    [batch] = opened([[Record(b"key", b"value", NOW), Record(b"key", b"other", NOW)]])
    engine: RecordEngine = kind(100, 90)
    broken = batch._replace(body=bytes(batch.body)[:-cut])
    with pytest.raises(UnreadableRecords):
        engine.add([broken], 0)
    with pytest.raises(UnreadableRecords):
        engine.choose([broken])


@given(st.lists(st.binary(max_size=40), max_size=50))
def test_equal_keys_have_equal_hashes_wherever_they_are(keys: list[bytes]) -> None:
    data = b"".join(keys) + bytes(PADDING)
    size = np.array([len(key) for key in keys], np.int64)
    start = np.cumsum(size) - size
    first, second = key_hashes(data, start, size)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert len(set(pairs)) == len(set(keys))
    assert all(pairs[keys.index(key)] == pair for key, pair in zip(keys, pairs, strict=True))
    assert 0 not in first


def test_only_a_large_pass_uses_numpy() -> None:
    assert isinstance(new_engine(10, 90, is_large=True), VectorEngine)
    assert isinstance(new_engine(10, 90, is_large=False), PlainEngine)


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_broker_without_a_large_pass_does_not_import_numpy() -> None:
    code = """
import sys
import tidelog.node.node
from tidelog.log.cleaner.record_choice import new_engine
new_engine(10, 90, is_large=False)
print("numpy" in sys.modules)
"""
    assert printed(code) == "False"


def test_without_numpy_a_large_pass_uses_the_plain_engine() -> None:
    code = """
import sys
from tidelog.log.cleaner.record_choice import new_engine
sys.modules["numpy"] = None
print(type(new_engine(10, 90, is_large=True)).__name__)
"""
    assert printed(code) == "PlainEngine"
