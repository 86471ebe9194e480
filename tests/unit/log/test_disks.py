"""The disk interface: rules for both real files and the simulated disk, then rules for each."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.model.disk import Disk
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.files.disposal import close_elsewhere
from tidelog.runtime.files.file import RealFile
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.machines.inodes import PAGE


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    made: Disk = RealDisk(tmp_path / "logs") if request.param == "real" else SimDisk()
    return made


# -- rules for both disks


def test_appends_go_to_the_end(disk: Disk) -> None:
    file = disk.open("a")
    file.append((b"one", bytearray(b"two")))
    file.append((memoryview(b"three"),))
    assert file.size == disk.size("a") == 11
    assert file.read(0, 100) == b"onetwothree"
    assert file.read(3, 3) == b"two"
    assert file.read(11, 5) == b""


def test_writes_in_place(disk: Disk) -> None:
    file = disk.open("a")
    file.append((b"0123456789",))
    file.write_at(3, b"xyz")
    file.write_at(9, b"end")
    assert file.read(0, 100) == b"012xyz678end"
    assert file.size == 12


def test_truncation_both_ways(disk: Disk) -> None:
    file = disk.open("a")
    file.append((b"0123456789",))
    file.truncate(4)
    file.append((b"ab",))
    assert file.read(0, 100) == b"0123ab"
    file.truncate(8)
    assert file.read(0, 100) == b"0123ab\0\0"


def test_all_can_be_synced_at_once(disk: Disk) -> None:
    disk.make_directory("new")
    disk.open("new/file").append((b"x",))
    disk.sync_all()
    assert disk.read_file("new/file") == b"x"


def test_there_is_space_and_not_more_than_the_volume_has(disk: Disk) -> None:
    total, usable = disk.space()
    assert 0 <= usable <= total


def test_one_path_is_one_file(disk: Disk) -> None:
    first, second = disk.open("a"), disk.open("a")
    first.append((b"x",))
    second.append((b"y",))
    assert first.read(0, 9) == b"xy"
    assert second.size == 2


def test_a_file_outlives_its_name(disk: Disk) -> None:
    file = disk.open("a")
    file.append((b"kept",))
    disk.remove("a")
    assert not disk.exists("a")
    assert file.read(0, 9) == b"kept"
    assert disk.open("a").size == 0


def test_a_file_follows_a_rename(disk: Disk) -> None:
    file = disk.open("a")
    file.append((b"one",))
    disk.rename("a", "b")
    file.append((b"two",))
    assert disk.read_file("b") == b"onetwo"
    assert not disk.exists("a")


def test_a_rename_replaces(disk: Disk) -> None:
    old, new = disk.open("a"), disk.open("b")
    old.append((b"old",))
    new.append((b"new",))
    disk.rename("b", "a")
    assert disk.read_file("a") == b"new"
    assert old.read(0, 9) == b"old"
    assert disk.open("a") is new


def test_files_follow_their_directory(disk: Disk) -> None:
    disk.make_directory("t-0")
    file = disk.open("t-0/a")
    file.append((b"one",))
    disk.rename("t-0", "t-0.gone")
    file.append((b"two",))
    file.sync()
    assert disk.read_file("t-0.gone/a") == b"onetwo"
    assert disk.list("t-0") == []
    disk.remove_tree("t-0.gone")
    assert disk.list("") == []
    assert file.read(0, 9) == b"onetwo"


def test_directories(disk: Disk) -> None:
    assert disk.list("t-0") == []
    assert disk.make_directory("t-0")
    assert not disk.make_directory("t-0")
    disk.open("t-0/b")
    disk.open("t-0/a")
    assert disk.list("t-0") == ["a", "b"]
    assert disk.list("") == ["t-0"]
    assert disk.exists("t-0")
    assert disk.exists("t-0/a")
    assert not disk.exists("t-0/c")
    disk.remove("t-0/c")
    disk.remove_tree("t-1")
    disk.sync_directory("t-0")
    disk.sync_directory("")


def test_whole_files(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.read_file("a")
    disk.write_file("a", b"one")
    disk.write_file("a", b"two", durable=False)
    assert disk.read_file("a") == b"two"
    assert disk.list("") == ["a"]


# -- rules for real files


def test_few_descriptors_serve_many_files(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_open_files=8)
    before = len(os.listdir("/proc/self/fd"))
    files = [disk.open(f"f{number}") for number in range(100)]
    for turn in range(3):
        for number, file in enumerate(files):
            file.append((f"{number},{turn};".encode(),))
    assert len(os.listdir("/proc/self/fd")) <= before + 8
    for number, file in enumerate(files):
        assert file.read(0, 100) == f"{number},0;{number},1;{number},2;".encode()


def test_a_file_without_a_descriptor_survives_removal_and_rename(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_open_files=1)
    kept, moved = disk.open("kept"), disk.open("moved")
    kept.append((b"kept",))
    moved.append((b"moved",))
    disk.open("another")
    disk.remove("kept")
    disk.rename("moved", "elsewhere")
    disk.open("yet another").append((b"x",))
    assert kept.read(0, 9) == b"kept"
    assert moved.read(0, 9) == b"moved"


def test_a_dropped_file_closes_its_descriptor(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    file = disk.open("a")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    del file
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_held_descriptor_is_not_taken_away(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_open_files=1)
    file = disk.open("a")
    assert isinstance(file, RealFile)
    file.append((b"mine",))
    held = file.descriptor()
    for number in range(5):
        disk.open(f"f{number}").append((b"other",))
    assert os.pread(held.number, 9, 0) == b"mine"


def test_other_threads_read_and_sync(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path, max_open_files=2)
    files = [disk.open(f"f{number}") for number in range(10)]
    for number, file in enumerate(files):
        file.append((bytes([number]) * 10,))

    def work(number: int) -> bytes:
        files[number].sync()
        return files[number].read(0, 10)

    with ThreadPoolExecutor(4) as pool:
        for turn in range(20):
            found = list(pool.map(work, range(10)))
            files[turn % 10].append((b"",))
            assert found == [bytes([number]) * 10 for number in range(10)]


def test_a_refused_append_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    file = disk.open("a")
    file.append((b"before",))
    real = os.pwritev

    def full(number: int, chunks: list[bytes], position: int) -> int:
        real(number, chunks[:1], position)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="No space"):
        file.append((b"part", b"rest"))
    monkeypatch.undo()
    assert file.size == 6
    assert disk.read_file("a") == b"before"


def test_a_disk_that_takes_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = RealDisk(tmp_path).open("a")
    real_v: Callable[..., int] = os.pwritev
    real: Callable[..., int] = os.pwrite
    monkeypatch.setattr(
        os, "pwritev", lambda number, chunks, position: real(number, chunks[0][:2], position)
    )
    monkeypatch.setattr(os, "pwrite", lambda number, data, at: real(number, data[:3], at))
    file.append((b"abcdef", b"ghijkl"))
    monkeypatch.undo()
    assert os.pwritev is real_v
    assert file.read(0, 99) == b"abcdefghijkl"


# -- rules for the simulated disk


def test_what_was_synced_survives_and_the_rest_may_not() -> None:
    outcomes = set()
    for seed in range(40):
        disk = SimDisk()
        file = disk.open("a")
        file.append((b"s" * 5_000,))
        file.sync()
        file.append((b"u" * 5_000,))
        disk.crash(SeededDice(seed))
        content = disk.read_file("a")
        assert content.startswith(b"s" * 5_000)
        assert set(content[5_000:]) <= {ord("u"), 0}
        outcomes.add(content)
    assert len(outcomes) > 5


def test_names_that_were_not_synced_may_be_lost() -> None:
    found = set()
    for seed in range(40):
        disk = SimDisk()
        disk.open("a")
        disk.sync_directory("")
        disk.rename("a", "b")
        disk.open("c")
        disk.crash(SeededDice(seed))
        found.add(tuple(disk.list("")))
    assert found == {("a",), ("b",), ("b", "c")}


@pytest.mark.parametrize("seed", range(5))
def test_syncing_all_keeps_every_byte_and_every_name(seed: int) -> None:
    disk = SimDisk()
    disk.make_directory("a")
    disk.open("a/file").append((b"x" * 3 * PAGE,))
    disk.write_file("a/whole", b"whole", durable=False)

    disk.sync_all()
    disk.crash(SeededDice(seed))

    assert disk.read_file("a/file") == b"x" * 3 * PAGE
    assert disk.read_file("a/whole") == b"whole"


def test_a_file_replaced_without_a_sync_may_be_old_empty_or_torn() -> None:
    found = set()
    for seed in range(80):
        disk = SimDisk()
        disk.write_file("a", b"old")
        disk.write_file("a", b"newer", durable=False)
        disk.crash(SeededDice(seed))
        found.add(disk.read_file("a"))
    assert {b"old", b"newer", b""} <= found
    for seed in range(20):
        disk = SimDisk()
        disk.write_file("a", b"old")
        disk.write_file("a", b"newer")
        disk.crash(SeededDice(seed))
        assert disk.read_file("a") == b"newer"


def test_syncing_a_new_file_keeps_its_name_and_its_directorys() -> None:
    for seed in range(20):
        disk = SimDisk()
        disk.make_directory("t-0")
        file = disk.open("t-0/a")
        file.append((b"x",))
        file.sync()
        disk.crash(SeededDice(seed))
        assert disk.read_file("t-0/a") == b"x"


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "truncate", "write", "sync"]),
            st.integers(0, 3 * PAGE),
            st.integers(0, 255),
        ),
        max_size=15,
    ),
    st.integers(0, 1 << 30),
)
def test_a_crash_is_one_of_a_kind_per_seed_and_keeps_what_was_synced(
    steps: list[tuple[str, int, int]], seed: int
) -> None:
    outcomes = []
    for _ in range(2):
        disk = SimDisk()
        file = disk.open("a")
        file.sync()
        synced, touched = b"", 0
        for kind, size, byte in steps:
            match kind:
                case "append":
                    file.append((bytes([byte]) * size,))
                case "truncate":
                    touched = min(touched, size)
                    file.truncate(size)
                case "write":
                    touched = min(touched, size)
                    file.write_at(min(size, file.size), bytes([byte]) * 10)
                case _:
                    file.sync()
                    synced = file.read(0, file.size)
                    touched = len(synced)
        disk.crash(SeededDice(seed))
        content = disk.read_file("a")
        assert content[:touched] == synced[:touched]
        outcomes.append(content)
    assert outcomes[0] == outcomes[1]


def test_faults_are_what_the_operating_system_says() -> None:
    disk = SimDisk()
    file = disk.open("a")
    file.append((b"12345",))

    disk.faults.capacity = 8
    with pytest.raises(OSError, match="No space") as full:
        file.append((b"6789",))
    assert full.value.errno == errno.ENOSPC
    assert file.size == 5

    disk.faults.is_read_only = True
    writes: list[Callable[[], object]] = [
        lambda: file.append((b"6",)),
        lambda: file.truncate(1),
        lambda: disk.write_file("b", b""),
        lambda: disk.rename("a", "b"),
        lambda: disk.remove("a"),
        lambda: disk.make_directory("d"),
    ]
    for write in writes:
        with pytest.raises(OSError, match="Read-only"):
            write()
    disk.faults.is_read_only = False

    disk.faults.fails_sync = True
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.faults.fails_sync = False

    disk.faults.fails_reads.add("a")
    with pytest.raises(OSError, match="Input/output"):
        file.read(0, 1)
    disk.faults.fails_reads.clear()

    disk.flip_bit("a", 8)
    assert file.read(0, 9) == b"13345"


@pytest.fixture
def left_to_others(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that the disk passes to a background thread to close."""
    numbers: list[int] = []
    for module in ("files.disposal", "files.removal"):
        monkeypatch.setattr(f"tidelog.runtime.{module}.close_elsewhere", numbers.append)
    return numbers


def test_a_large_file_is_not_freed_by_whoever_removes_it(
    tmp_path: Path, left_to_others: list[int]
) -> None:
    disk = RealDisk(tmp_path)
    disk.make_directory("t-0")
    for path, size in (("large", 2 << 20), ("small", 10), ("t-0/large", 2 << 20)):
        disk.open(path).append((bytes(size),))

    for name in ("large", "small"):
        disk.remove(name)
    disk.remove_tree("t-0")

    assert disk.list("") == []
    large = [number for number in left_to_others if os.fstat(number).st_size == 2 << 20]
    assert len(large) == 2
    assert all(os.fstat(number).st_nlink == 0 for number in left_to_others)
    for number in left_to_others:
        os.close(number)


def test_a_removed_file_that_is_still_read_is_freed_by_others_too(
    tmp_path: Path, left_to_others: list[int]
) -> None:
    disk = RealDisk(tmp_path)
    file = disk.open("read")
    file.append((b"still read",))
    disk.remove("read")
    assert file.read(0, 10) == b"still read"
    assert left_to_others == []

    del file

    [number] = left_to_others
    os.close(number)


def test_a_large_file_is_removed_when_no_more_files_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    disk.open("large").append((bytes(2 << 20),))

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        disk.remove("large")

    assert disk.list("") == []


def test_where_no_thread_can_be_started_it_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("tidelog.runtime.files.disposal._threads", [])
    monkeypatch.setattr("tidelog.runtime.files.disposal.Thread.start", refuse)
    reading, writing = os.pipe()

    close_elsewhere(writing)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writing)
    os.close(reading)


def test_what_is_closed_elsewhere_is_closed() -> None:
    reading, writing = os.pipe()
    close_elsewhere(writing)
    assert os.read(reading, 1) == b"", "the end of the pipe, which comes when it is closed"
    os.close(reading)


def test_the_boot_id_of_this_machine_stays_the_same(tmp_path: Path) -> None:
    one, other = RealDisk(tmp_path / "one"), RealDisk(tmp_path / "other")
    found = one.boot_id()
    assert found is not None
    assert len(found) == 36
    assert found == one.boot_id() == other.boot_id()


def test_a_machine_without_boot_ids_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelog.runtime.files.disk._BOOT_ID", str(tmp_path / "missing"))
    assert RealDisk(tmp_path / "logs").boot_id() is None
