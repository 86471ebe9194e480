"""The reader of segment files, without Spark: it returns records unchanged or reports damage."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.segment_writing import some_batches, some_records, write_segment

from tidelog.client.ledger import checksum
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.records.records import Header, Record, build_batch
from tidelog_pipelines.sources import batch_compression
from tidelog_pipelines.sources.segment_files import NoSegments, find_parts
from tidelog_pipelines.sources.segments import PART_BYTES, record_batches

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def rows(
    data: Path,
    topic: str = "orders",
    part_bytes: int = PART_BYTES,
    stretches: list[tuple[int, int]] | None = None,
) -> list[dict[str, Any]]:
    return [
        row
        for part in find_parts({1: str(data)}, topic, part_bytes)
        for batch in record_batches(part, True, stretches)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_every_record_comes_back_from_every_codec(tmp_path: Path, codec: str) -> None:
    write_segment(tmp_path, "orders", some_batches(5, 40, codec))

    found = rows(tmp_path)

    assert [
        Record(row["key"], row["value"], row["timestamp_ms"], offset=row["offset"]) for row in found
    ] == some_records(0, 200)
    assert {row["error"] for row in found} == {None}
    assert [row["leader_epoch"] for row in found[::40]] == [0, 0, 0, 1, 1]
    assert all(row["checksum"] == checksum(row["key"], row["value"]) for row in found)


@pytest.mark.parametrize("part_bytes", [500, PART_BYTES])
def test_batches_without_an_offset_in_a_stretch_are_left_out(
    tmp_path: Path, part_bytes: int
) -> None:
    write_segment(tmp_path, "orders", some_batches(5, 40, "none"))

    found = rows(tmp_path, part_bytes=part_bytes, stretches=[(39, 40), (90, 120)])

    assert [row["offset"] for row in found] == [*range(40), *range(80, 120)]


contents = st.none() | st.binary(max_size=300)
records = st.builds(
    Record,
    contents,
    contents,
    st.integers(0, 2**42),
    st.lists(st.builds(Header, st.text(max_size=5), contents), max_size=3).map(tuple),
    st.just(NO_OFFSET),
)


@given(st.lists(st.lists(records, min_size=1, max_size=20), min_size=1, max_size=5))
def test_any_records_come_back(tmp_path_factory: Any, batches: list[list[Record]]) -> None:
    data, offset, raw = tmp_path_factory.mktemp("data"), 0, []
    for batch in batches:
        raw.append(build_batch(batch, offset))
        offset += len(batch)
    write_segment(data, "orders", raw)

    found = rows(data)

    assert [(row["key"], row["value"], row["timestamp_ms"]) for row in found] == [
        (record.key, record.value, record.timestamp) for batch in batches for record in batch
    ]
    assert [row["offset"] for row in found] == list(range(offset))


@pytest.mark.parametrize("every", [1, 3, 1000])
def test_parts_of_a_segment_hold_each_record_once(tmp_path: Path, every: int) -> None:
    path = write_segment(tmp_path, "orders", some_batches(30, 10), every=every)

    for part_bytes in (61, 500, 4096, path.stat().st_size):
        found = rows(tmp_path, part_bytes=part_bytes)
        assert [row["offset"] for row in found] == list(range(300))


def test_a_flipped_bit_costs_one_batch(tmp_path: Path) -> None:
    batches = some_batches(5, 10)
    path = write_segment(tmp_path, "orders", batches)
    raw = bytearray(path.read_bytes())
    raw[len(batches[0]) + len(batches[1]) + 80] ^= 4
    path.write_bytes(raw)

    found = rows(tmp_path)

    (bad,) = [row for row in found if row["error"] is not None]
    assert (bad["offset"], bad["last_offset"], bad["error"]) == (20, 29, "its CRC is wrong")
    good = [row["offset"] for row in found if row["error"] is None]
    assert good == [*range(20), *range(30, 50)]


def test_a_wrong_length_costs_what_lies_before_the_next_indexed_batch(tmp_path: Path) -> None:
    batches = some_batches(6, 10)
    path = write_segment(tmp_path, "orders", batches, every=2)
    raw = bytearray(path.read_bytes())
    raw[len(batches[0]) + len(batches[1]) + len(batches[2]) + 8] = 0x7F
    path.write_bytes(raw)

    for part_bytes in (200, PART_BYTES):
        found = rows(tmp_path, part_bytes=part_bytes)
        (bad,) = [row for row in found if row["error"] is not None]
        assert bad["error"].startswith("cut short")
        assert [row["offset"] for row in found if row["error"] is None] == [
            *range(30),
            *range(40, 60),
        ]


def test_an_offset_that_goes_back_is_damage_though_no_crc_covers_it(tmp_path: Path) -> None:
    batches = some_batches(3, 10)
    batches[1] = (3).to_bytes(8, "big") + batches[1][8:]
    write_segment(tmp_path, "orders", batches)

    (bad,) = [row for row in rows(tmp_path) if row["error"] is not None]

    assert bad["error"] == "its base offset 3 is below 10"


def test_the_end_of_an_active_segment_may_be_torn_or_not_yet_written(tmp_path: Path) -> None:
    batches = some_batches(3, 10)
    for tail in (batches[2][:100], batches[2][:30], bytes(500)):
        write_segment(tmp_path, "orders", [*batches[:2], tail])
        assert [row["offset"] for row in rows(tmp_path)] == list(range(20))


def test_the_end_of_an_older_segment_may_not(tmp_path: Path) -> None:
    batches = some_batches(3, 10)
    write_segment(tmp_path, "orders", [batches[0], batches[1][:100]])
    write_segment(tmp_path, "orders", [batches[2]], base_offset=20)

    found = rows(tmp_path)

    assert [(row["offset"], row["error"]) for row in found if row["error"]] == [
        (10, "cut short; 100 bytes")
    ]


def test_random_damage_never_stops_the_reader(tmp_path: Path) -> None:
    dice = random.Random(7)
    whole = b"".join(some_batches(10, 20))
    for _ in range(200):
        raw = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        write_segment(tmp_path, "orders", [bytes(raw)])
        assert len(rows(tmp_path)) <= 220


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSegments, match="replica 1 has no segment of 'orders'"):
        rows(tmp_path)


def test_a_topic_whose_name_begins_another_is_not_mixed_with_it(tmp_path: Path) -> None:
    write_segment(tmp_path, "orders", some_batches(1, 10))
    write_segment(tmp_path, "orders-0", some_batches(1, 20))

    assert len(rows(tmp_path, "orders")) == 10


@pytest.mark.parametrize("codec", CODECS[1:])
def test_f64_a_batch_that_unpacks_to_too_much_is_reported_and_stepped_over(
    codec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_compression, "MAX_UNPACKED", 100_000)
    bomb = build_batch([Record(None, bytes(1_000_000), 5)], 0, compression=codec)
    sound = build_batch([Record(None, b"value", 6)], 1, compression=codec)
    write_segment(tmp_path, "orders", [bomb, sound])
    read = rows(tmp_path)
    assert [row["value"] for row in read if row["error"] is None] == [b"value"]
    [bad] = [row for row in read if row["error"] is not None]
    assert bad["offset"] == 0
    assert codec in bad["error"]
