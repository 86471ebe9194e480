"""`dump-log` prints files of Apache Kafka 4.1 as Kafka's own kafka-dump-log.sh does."""

import os
from pathlib import Path
from struct import pack

import pytest

from tidelog.cli.commands import invoke
from tidelog.cli.output.segment_dump import Detail, segment_lines
from tidelog.log.producers.producer_snapshots import encode
from tidelog.log.producers.producers import BatchSpan, ProducerEntry
from tidelog.model.user_error import UserError
from tidelog.protocol.records.batch import (
    HEADER_SIZE,
    TIMESTAMP_TYPE_MASK,
    read_header,
    stamp_append_time,
)
from tidelog.protocol.records.records import ControlType, Record, build_batch, control_key

DATA = Path(__file__).parent / "data"
SEGMENT = "00000000000000000000.log"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([SEGMENT], "segment.txt"),
        ([SEGMENT, "--print-data-log"], "segment-with-data.txt"),
        (["--files", SEGMENT, "--print-data-log", "--deep-iteration"], "segment-with-data.txt"),
        ([f"__cluster_metadata-0/{SEGMENT}", "--cluster-metadata-decoder"], "metadata.txt"),
        (["bootstrap.checkpoint", "--cluster-metadata-decoder"], "bootstrap.txt"),
    ],
)
def test_prints_what_kafkas_tool_prints(
    arguments: list[str],
    printed: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(DATA)
    assert invoke(["dump-log", *arguments]) == 0
    assert capsys.readouterr().out == (DATA / printed).read_text()


def batch_columns(batch: bytes | bytearray, *, records: bool = False) -> list[str]:
    return list(segment_lines(memoryview(batch), Detail(records=records)))


def test_a_batch_with_a_wrong_checksum_is_shown_as_invalid() -> None:
    batch = bytearray(build_batch([Record(None, b"v", 1)]))
    assert batch_columns(batch)[0].endswith("isvalid: true")
    batch[-1] ^= 1
    assert batch_columns(batch)[0].endswith("isvalid: false")


def test_a_torn_tail_is_counted() -> None:
    batch = build_batch([Record(None, b"v", 1)])
    assert batch_columns(batch + batch[:-1])[1:] == [
        f"Found {len(batch) - 1} invalid bytes at the end of the segment"
    ]


def test_append_time_and_sequences_are_shown() -> None:
    batch = bytearray(
        build_batch(
            [Record(None, b"a", 1), Record(None, b"b", 1)],
            producer_id=5,
            producer_epoch=0,
            base_sequence=2**31 - 1,
        )
    )
    stamp_append_time(memoryview(batch), 0, read_header(batch), 99)
    assert read_header(batch).attributes == TIMESTAMP_TYPE_MASK
    line, *records = batch_columns(batch, records=True)
    assert "baseSequence: 2147483647 lastSequence: 0 producerId: 5" in line
    assert " LogAppendTime: 99 " in line
    assert [record.split("sequence: ")[1].split()[0] for record in records] == ["2147483647", "0"]


def test_transaction_markers_are_named() -> None:
    marker = Record(control_key(ControlType.COMMIT), pack(">hi", 0, 3), 1)
    batch = build_batch([marker], is_control=True, is_transactional=True, producer_id=1)
    assert batch_columns(batch, records=True)[1].endswith(
        "headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 3"
    )


def test_records_that_cannot_be_unpacked_do_not_stop_the_rest() -> None:
    batch = bytearray(build_batch([Record(None, b"v", 1)], compression="gzip"))
    batch[HEADER_SIZE] ^= 0xFF
    good = build_batch([Record(None, b"v", 1)], 1)
    lines = batch_columns(batch + good, records=True)
    assert lines[1].startswith("| unreadable: ")
    assert lines[2].startswith("baseOffset: 1 ")


@pytest.mark.parametrize(
    ("name", "content", "printed"),
    [
        (
            "00000000000000000100.index",
            pack(">iiiiii", 5, 0, 9, 4200, 0, 0),
            ["offset: 105 position: 0", "offset: 109 position: 4200"],
        ),
        ("00000000000000000100.timeindex", pack(">qi", 77, 3), ["timestamp: 77 offset: 103"]),
        ("00000000000000000100.index", b"", []),
        (
            "00000000000000000000.txnindex",
            pack(">hqqqq", 0, 1, 2, 3, 4),
            ["version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4"],
        ),
    ],
)
def test_indexes(
    name: str,
    content: bytes,
    printed: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert invoke(["dump-log", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"Dumping {path}", *printed]


def test_producer_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = ProducerEntry(4)
    entry.last_timestamp, entry.coordinator_epoch = 99, -1
    entry.batches.append(BatchSpan(0, 2, 10, 12, 99))
    path = tmp_path / "00000000000000000013.snapshot"
    path.write_bytes(encode({1000: entry}))
    assert invoke(["dump-log", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "producerId: 1000 producerEpoch: 4 coordinatorEpoch: -1 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 99 "
        "firstSequence: 0 lastSequence: 2 lastOffset: 12 offsetDelta: 2 timestamp: 99"
    )
    path.write_bytes(b"torn")
    with pytest.raises(UserError, match="producer snapshot is torn"):
        invoke(["dump-log", str(path)])


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").touch()
    with pytest.raises(UserError, match="the name is not that of a segment"):
        invoke(["dump-log", str(tmp_path / "leader-epoch-checkpoint")])


@pytest.mark.parametrize("name", ["nope.log", SEGMENT, "nope"])
def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=f"{name}: there is no such file"):
        invoke(["dump-log", str(tmp_path / name)])


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).mkdir()
    for path in (tmp_path, tmp_path / SEGMENT):
        with pytest.raises(UserError, match=f"{path}: this is a directory"):
            invoke(["dump-log", str(path)])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SEGMENT)
    with pytest.raises(UserError, match="this is not a regular file"):
        invoke(["dump-log", str(tmp_path / SEGMENT)])


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_an_empty_file_has_nothing_to_show(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{7:020d}{suffix}"
    path.touch()
    assert invoke(["dump-log", str(path)]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"Dumping {path}"
    assert rest == (["Log starting offset: 7"] if suffix == ".log" else [])


def test_a_torn_producer_snapshot_is_named(tmp_path: Path) -> None:
    path = tmp_path / f"{7:020d}.snapshot"
    path.touch()
    with pytest.raises(UserError, match=f"{path}: the producer snapshot is torn"):
        invoke(["dump-log", str(path)])
