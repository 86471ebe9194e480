"""If two log directories have the same partition, the node uses the copy that has the records."""

import pytest
from tests.sim.messages import batch, create_topic, fetch_from, produce_to
from tests.unit.node.bench import Bench, formatted

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.disk import SimDisk

COUNT = 5
LOG = f"{0:020d}.log"
METADATA = "__cluster_metadata-0"


def stopped(*, cleanly: bool) -> Bench:
    """A stopped node with records in two partitions, one in each log directory."""
    node = Bench(1, formatted(seed=2), formatted(seed=3), log_dirs="one,two")
    node.ask(create_topic("orders", 2, flush_messages="1"))
    node.settle()
    for _ in range(COUNT):
        node.ask(produce_to("orders", {0: batch(b"x"), 1: batch(b"x")}))
    node.settle()
    node.pass_time(61_000)
    if cleanly:
        node.shutdown()
    for disk in node.disks:
        disk.sync_all()
        disk.kill()
    return node


def plant(disk: SimDisk, name: str, files: dict[str, bytes]) -> None:
    disk.make_directory(name)
    for file, content in files.items():
        disk.write_file(f"{name}/{file}", content)
    disk.sync_all()


@pytest.mark.parametrize("cleanly", [True, False])
@pytest.mark.parametrize("kind", ["empty", "cut", "whole"])
def test_f58_a_poorer_copy_in_another_directory_does_not_hide_the_records(
    kind: str, cleanly: bool
) -> None:
    node = stopped(cleanly=cleanly)
    held = [[one for one in disk.list("") if one.startswith("orders-")] for disk in node.disks]
    for (home, [name]), other in zip(enumerate(held), reversed(node.disks), strict=True):
        disk = node.disks[home]
        files = {file: disk.read_file(f"{name}/{file}") for file in disk.list(name)}
        if kind == "cut":
            files[LOG] = files[LOG][: len(files[LOG]) // 2]
        plant(other, name, {} if kind == "empty" else files)

    again = Bench(1, *node.disks, seed=9, log_dirs="one,two")
    again.settle()

    for partition in range(2):
        [(_, [fetched])] = again.ask(fetch_from("orders", {partition: 0})).topics
        assert fetched.error is ErrorCode.none
        assert fetched.high_watermark == COUNT
    strays = [one for disk in node.disks for one in disk.list("") if one.endswith("-stray")]
    assert len(strays) == 2


def test_f58_a_metadata_log_beside_the_configured_one_does_not_take_its_place() -> None:
    node = stopped(cleanly=True)
    plant(node.disks[1], METADATA, {LOG: b""})

    reversed_disks = reversed(node.disks)
    again = Bench(1, *reversed_disks, seed=9, log_dirs="two,one", metadata_log_dir="one")
    again.settle()

    [(_, [fetched])] = again.ask(fetch_from("orders")).topics
    assert fetched.error is ErrorCode.none
    assert fetched.high_watermark == COUNT
