"""Checkpoint files have Kafka's format, and a broker starts whatever their content is."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.checkpoints.clean_shutdown import CleanShutdown, CleanShutdownMark
from tidelog.model.ids import TopicPartition
from tidelog.sim.machines.disk import SimDisk

A, B = TopicPartition("orders", 0), TopicPartition("pay.ments-eu", 12)
ID = UUID("8f3b1c52-6c1e-4f8e-9a55-0d6f0f7a1b2c")


def written(path: str, content: bytes) -> SimDisk:
    disk = SimDisk()
    disk.make_directory("orders-0")
    disk.write_file(path, content)
    return disk


def test_offsets_are_kafkas() -> None:
    disk = SimDisk()
    disk.write_file("x", checkpoints.encode_offsets({A: 5, B: 1_234_567_890_123}))
    assert disk.read_file("x") == b"0\n2\norders 0 5\npay.ments-eu 12 1234567890123\n"
    assert checkpoints.read_offsets(disk, "x") == ({A: 5, B: 1_234_567_890_123}, True)


def test_an_absent_file_is_sound_and_empty() -> None:
    assert checkpoints.read_offsets(SimDisk(), "x") == ({}, True)


@given(st.integers(0, 60))
def test_f08_a_torn_checkpoint_gives_its_whole_lines(cut: int) -> None:
    disk = SimDisk()
    whole = checkpoints.encode_offsets({A: 512, B: 34})
    disk.write_file("x", whole[:cut])
    offsets, was_sound = checkpoints.read_offsets(disk, "x")
    assert offsets.items() <= {A: 512, B: 34}.items()
    assert was_sound == (cut >= len(whole))


@given(st.binary(max_size=100))
def test_f08_garbage_is_read_as_nothing(garbage: bytes) -> None:
    disk = written("orders-0/x", garbage)
    checkpoints.read_offsets(disk, "orders-0/x")
    checkpoints.read_epochs(disk, "orders-0/x")
    disk.write_file("orders-0/leader-epoch-checkpoint", garbage)
    disk.write_file(names.META_PROPERTIES, garbage)
    checkpoints.read_meta_properties(disk)
    disk.write_file(names.CLEAN_SHUTDOWN, garbage)
    assert CleanShutdownMark(disk).found == CleanShutdown(True)


@pytest.mark.parametrize(
    "content", [b"1\n1\norders 0 5\n", b"0\nx\norders 0 5\n", b"0\n1\norders zero 5\n", b"0\n"]
)
def test_f08_what_does_not_fit_is_said(content: bytes) -> None:
    assert checkpoints.read_offsets(written("x", content), "x") == ({}, False)


def test_meta_properties_read_back() -> None:
    disk = SimDisk()
    assert checkpoints.read_meta_properties(disk) is None
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, ID)
    checkpoints.write_meta_properties(disk, meta)
    assert checkpoints.read_meta_properties(disk) == meta


def test_meta_properties_of_kafka() -> None:
    content = b"""#
#Sat Nov 15 21:00:00 UTC 2025
cluster.id=4L6g3nShT-eMCtK--X86sw
directory.id=jzscUmweT46aVQ1vD3obLA
node.id=1
version=1
"""
    meta = checkpoints.read_meta_properties(written(names.META_PROPERTIES, content))
    assert meta == MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, ID)


@given(st.uuids())
def test_ids_read_back(identifier: UUID) -> None:
    assert checkpoints.decode_id(checkpoints.encode_id(identifier)) == identifier


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", A),
        ("pay.ments-eu-12", B),
        ("a--3", TopicPartition("a-", 3)),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("orders-01", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-0.0123456789abcdef0123456789abcdef-stray", None),
        ("meta.properties", None),
        ("lost+found", None),
    ],
)
def test_directory_names(name: str, partition: TopicPartition | None) -> None:
    assert names.partition_of(name) == partition


def test_a_renamed_directory_fits_a_file_name() -> None:
    name = names.renamed_directory(TopicPartition("t" * 249, 123), ID, names.DELETE_DIRECTORY)
    assert len(name) == 255
    assert name.endswith(f"-123.{ID.hex}-delete")
    assert names.is_deleted_directory(name)
    assert not names.is_deleted_directory("my-delete")


def test_offsets_in_names() -> None:
    assert names.offset_name(42, names.LOG) == "00000000000000000042.log"
    assert names.offset_of("00000000000000000042.log", names.LOG) == 42
    for odd in ("42.log", "00000000000000000042.index", "0000000000000000004x.log", "a.log"):
        assert names.offset_of(odd, names.LOG) is None
