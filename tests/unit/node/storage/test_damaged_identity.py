"""A damaged meta.properties is restored from its copy, or reported in one sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.messages import batch, create_topic, produce_to
from tests.unit.node.bench import START_MS, Bench, formatted

from tidelog.log.checkpoints.checkpoints import read_meta_properties
from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY
from tidelog.node.node import Node, NotFormatted
from tidelog.sim.machines.cluster import node_settings
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

GARBAGE = [b"", b"\xff\xfe\x00garbage", b"node.id=1\n", b"node.id=-5\ncluster.id=x\n", b"\0" * 99]


def used() -> SimDisk:
    node = Bench(1, formatted())
    node.ask(create_topic("orders"))
    node.ask(produce_to("orders", batch(b"x")))
    node.disk.kill()
    return node.disk


def start(disk: SimDisk) -> Node:
    return Node(node_settings(1, 1), [disk], SeededDice(5), START_MS)


@pytest.mark.parametrize("content", [*GARBAGE, None])
def test_f59_a_damaged_identity_is_written_anew_from_its_copy(content: bytes | None) -> None:
    disk = used()
    before = read_meta_properties(disk)
    disk.remove(META_PROPERTIES)
    if content is not None:
        disk.write_file(META_PROPERTIES, content)
    start(disk)
    assert read_meta_properties(disk) == before


@given(st.data())
def test_f59_a_changed_bit_of_the_identity_is_never_believed(data: st.DataObject) -> None:
    disk = formatted()
    before = read_meta_properties(disk)
    path = data.draw(st.sampled_from([META_PROPERTIES, META_PROPERTIES_COPY]))
    disk.flip_bit(path, data.draw(st.integers(0, disk.size(path) * 8 - 1)))
    start(disk)
    assert read_meta_properties(disk) == before


@pytest.mark.parametrize("content", [*GARBAGE, None])
def test_f59_an_identity_without_a_copy_is_asked_for_in_one_sentence(content: bytes | None) -> None:
    disk = used()
    for path in (META_PROPERTIES, META_PROPERTIES_COPY):
        disk.remove(path)
        if content is not None:
            disk.write_file(path, content)
    with pytest.raises(NotFormatted, match="missing or unreadable, and so is its copy"):
        start(disk)


def test_f59_a_directory_with_partitions_is_not_taken_for_a_new_one() -> None:
    """If the directory got a new id, the cluster would consider its partitions lost."""
    node = Bench(1, formatted(), formatted(seed=3), log_dirs="one,two")
    node.ask(create_topic("orders", 4))
    node.ask(produce_to("orders", {index: batch(b"x") for index in range(4)}))
    for disk in node.disks:
        disk.kill()
    second = node.disks[1]
    second.remove(META_PROPERTIES)
    second.remove(META_PROPERTIES_COPY)
    settings = node_settings(1, 1, {"log.dirs": "one,two"})
    with pytest.raises(NotFormatted, match="is missing or unreadable"):
        Node(settings, node.disks, SeededDice(5), START_MS)
    assert not second.exists(META_PROPERTIES)
