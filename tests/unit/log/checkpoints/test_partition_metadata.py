"""partition.metadata has Kafka's two lines, and a copy of the topic id in case of damage."""

from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.checkpoints import partition_metadata
from tidelog.log.checkpoints.partition_metadata import TopicIdRead
from tidelog.sim.machines.disk import SimDisk

ID = UUID("8f3b1c52-6c1e-4f8e-9a55-0d6f0f7a1b2c")


def read(content: bytes) -> TopicIdRead:
    disk = SimDisk()
    disk.make_directory("orders-0")
    disk.write_file("orders-0/partition.metadata", content)
    return partition_metadata.read(disk, "orders-0")


def test_the_first_lines_are_kafkas() -> None:
    content = partition_metadata.encode(ID, 0)
    assert content.startswith(b"version: 0\ntopic_id: jzscUmweT46aVQ1vD3obLA\n")
    assert read(content) == TopicIdRead(ID, 0)


def test_a_file_of_kafka_is_read() -> None:
    assert read(b"version: 0\ntopic_id: jzscUmweT46aVQ1vD3obLA").topic_id == ID


@given(st.integers(0, len(partition_metadata.encode(ID, 0)) * 8 - 1))
def test_f58_one_changed_bit_neither_hides_the_topic_nor_makes_it_another(bit: int) -> None:
    content = bytearray(partition_metadata.encode(ID, 0))
    content[bit // 8] ^= 1 << bit % 8
    found = read(bytes(content))
    assert found.topic_id == ID
    assert found.needs_repair


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_sound_file_of_kafka_needs_no_repair(end: bytes) -> None:
    assert not read(b"version: 0\ntopic_id: jzscUmweT46aVQ1vD3obLA" + end).needs_repair


@given(st.binary(max_size=120).filter(lambda garbage: garbage != partition_metadata.RESTORED))
def test_f59_garbage_names_no_topic(garbage: bytes) -> None:
    found = read(garbage)
    assert found.topic_id is None
    assert not found.is_restored
    assert not found.needs_repair


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"topic_id: x\n", b"\xff" * 40])
def test_f59_what_is_cut_short_names_no_topic(content: bytes) -> None:
    assert read(content).topic_id is None


def test_the_partition_is_known_too() -> None:
    assert read(partition_metadata.encode(ID, 7)).partition == 7
    assert read(b"version: 0\ntopic_id: jzscUmweT46aVQ1vD3obLA\n").partition is None


@given(st.integers(0, len(partition_metadata.encode(ID, 7)) * 8 - 1))
def test_f58_one_changed_bit_does_not_move_a_partition(bit: int) -> None:
    content = bytearray(partition_metadata.encode(ID, 7))
    content[bit // 8] ^= 1 << bit % 8
    found = read(bytes(content))
    assert found.topic_id == ID
    assert found.partition in (7, None)


def test_a_file_of_an_earlier_version_is_read_and_needs_no_repair() -> None:
    text = "jzscUmweT46aVQ1vD3obLA"
    older = f"version: 0\ntopic_id: {text}\ntidelog_copy: {text} {crc32c(text.encode()):08x}\n"
    assert read(older.encode()) == TopicIdRead(ID)
