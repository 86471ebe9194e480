"""How the descriptor limit is divided, and what a node does when descriptors run out (F65)."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.unit.runtime.exhaustion import no_descriptor_left

from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.transport.descriptors import (
    FILES_PER_DIRECTORY,
    OWN,
    PEERS,
    DescriptorReserve,
    fewest,
    share_out,
)


@pytest.mark.parametrize("more", [0, 256, 1_024, 1_500, 20_000, 2**31 - 1])
@pytest.mark.parametrize("directories", [1, 3, 40])
def test_f65_shares_stay_within_the_limit_and_nobody_goes_without(
    more: int, directories: int
) -> None:
    limit = fewest(directories) + more
    shares = share_out(limit, directories)
    assert OWN + PEERS + shares.clients + directories * (shares.files + 1) <= limit
    assert 3 <= shares.files <= FILES_PER_DIRECTORY
    assert shares.clients >= 20


def test_f65_many_files_are_used_with_few_descriptors(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_open_files=20)
    before = len(os.listdir("/proc/self/fd"))
    files = [disk.open(f"{number}") for number in range(2_000)]
    for number, file in enumerate(files):
        file.append((b"%d" % number,))
    assert len(os.listdir("/proc/self/fd")) - before <= 21
    assert [file.read(0, 10) for file in files[::199]] == [b"%d" % n for n in range(0, 2_000, 199)]


OPERATIONS: dict[str, Callable[[RealDisk], object]] = {
    "append to a file that was closed": lambda disk: disk.open("t-0/9").append((b"x",)),
    "create": lambda disk: disk.open("t-0/new").append((b"x",)),
    "read": lambda disk: disk.open("t-0/9").read(0, 1),
    "truncate": lambda disk: disk.open("t-0/9").truncate(0),
    "sync": lambda disk: disk.open("t-0/9").sync(),
    "list": lambda disk: disk.list("t-0"),
    "read a checkpoint": lambda disk: disk.read_file("t-0/9"),
    "write a checkpoint": lambda disk: disk.write_file("checkpoint", b"x"),
    "rename over a file in use": lambda disk: disk.rename("t-0/8", "t-0/9"),
    "remove a file in use": lambda disk: disk.remove("t-0/9"),
    "sync a directory": lambda disk: disk.sync_directory("t-0"),
    "sync all": lambda disk: disk.sync_all(),
    "remove a directory": lambda disk: disk.remove_tree("t-0"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_f65_without_descriptors_a_disk_closes_files_that_it_can_open_again(
    tmp_path: Path, operation: str
) -> None:
    disk = RealDisk(tmp_path)
    disk.make_directory("t-0")
    files = [disk.open(f"t-0/{number}") for number in range(10)]
    for file in files:
        file.append((b"y",))
    files[9].close()
    elsewhere = [disk.open("elsewhere"), disk.open("somewhere")]
    with no_descriptor_left():
        OPERATIONS[operation](disk)
        assert [file.read(0, 1) for file in (*files[:8], elsewhere[0])] == [b"y"] * 8 + [b""]


def test_f65_where_nothing_can_be_closed_a_descriptor_is_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reserve, woken, refusals = DescriptorReserve(), [], [errno.EMFILE, errno.ENFILE, errno.ENOMEM]
    reserve.wake_with(lambda: woken.append(True))

    def attempt() -> str:
        if refusals:
            raise OSError(refusals.pop(), "none left")
        return "opened"

    assert reserve.retry(attempt) == "opened"
    assert len(woken) == 3
    assert "waiting for a file descriptor: none left" in caplog.text


def test_f65_another_thread_has_the_owner_make_room(tmp_path: Path) -> None:
    reserve = DescriptorReserve()
    disk = RealDisk(tmp_path, reserve=reserve)
    files = [disk.open(f"{number}") for number in range(4)]
    files[0].append((b"x",))
    files[0].close()
    found: list[bytes] = []
    reader = Thread(target=lambda: found.append(files[0].read(0, 1)))
    with no_descriptor_left():
        reader.start()
        while reader.is_alive():
            reserve.free_for_waiters()
        reader.join()
    assert found == [b"x"]


def test_other_errors_of_a_disk_are_not_waited_for(tmp_path: Path) -> None:
    reserve = DescriptorReserve()

    def refuse() -> None:
        raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        reserve.retry(refuse)
    with pytest.raises(FileNotFoundError):
        RealDisk(tmp_path).read_file("none")


def test_clients_are_closed_after_files() -> None:
    reserve, order = DescriptorReserve(), []

    def source(name: str, left: int) -> Callable[[], int]:
        def give_back() -> int:
            nonlocal left
            order.append(name)
            left -= 1
            return 1 if left >= 0 else 0

        return give_back

    reserve.add_source(source("files", 2))
    reserve.add_source(source("clients", 1))
    assert [reserve.free_some() for _ in range(4)] == [True, True, True, False]
    assert order == ["files", "files", "files", "clients", "files", "clients"]
