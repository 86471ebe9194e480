"""Real files: which bytes are in the page cache, and reads that do not wait for the disk."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidelog.model.disk import NotCached
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.files.file import RECENT_BYTES, RealFile

SIZE = 1 << 20
CONTENT = bytes(range(256)) * (SIZE // 256)


def opened(tmp_path: Path) -> tuple[RealDisk, RealFile]:
    """A disk, and a file on it that another run has written."""
    (tmp_path / "log").write_bytes(CONTENT)
    disk = RealDisk(tmp_path)
    file = disk.open("log")
    assert isinstance(file, RealFile)
    return disk, file


def missing(disk: RealDisk, file: RealFile, position: int, length: int) -> NotCached | None:
    """Drop the file from the page cache and read it; None if the file system cannot do that.

    The read may start the kernel's read-ahead, so a second read may find the bytes.
    """
    file.sync()
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    disk.only_cached = True
    try:
        assert file.read(position, length) == CONTENT[position : position + length]
    except NotCached as cold:
        return cold
    finally:
        disk.only_cached = False
    return None


def in_another_thread(read: Callable[[], bytes]) -> bytes:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read).result()


def test_a_cached_read_returns_the_bytes_and_ends_with_the_file(tmp_path: Path) -> None:
    disk, file = opened(tmp_path)
    file.read(0, SIZE)
    disk.only_cached = True
    assert file.read(1000, 5000) == CONTENT[1000:6000]
    assert file.read(SIZE - 10, 100) == CONTENT[-10:]
    assert file.read(SIZE, 100) == b""


def test_a_read_of_missing_bytes_names_them_and_another_thread_reads_them(tmp_path: Path) -> None:
    disk, file = opened(tmp_path)
    cold = missing(disk, file, 4096, 100)
    if cold is not None:
        assert cold.part == (file, 4096, 100)
    disk.only_cached = True
    assert in_another_thread(lambda: file.read(0, SIZE)) == CONTENT
    assert file.is_cached(0, SIZE)
    assert file.read(0, SIZE) == CONTENT


def test_a_file_system_that_cannot_tell_is_read_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = opened(tmp_path)
    plain = os.preadv

    def unable(number: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        if flags & os.RWF_NOWAIT:
            raise OSError(95, "Operation not supported")
        return plain(number, buffers, position)

    monkeypatch.setattr(os, "preadv", unable)
    disk.only_cached = True
    assert file.read(0, SIZE) == CONTENT
    assert file.is_cached(0, SIZE)


def test_an_error_of_the_disk_is_not_taken_for_a_missing_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = opened(tmp_path)

    def broken(*arguments: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", broken)
    disk.only_cached = True
    with pytest.raises(OSError, match="Input/output error"):
        file.read(0, 10)


def test_only_bytes_that_were_appended_a_moment_ago_need_no_question(tmp_path: Path) -> None:
    disk, file = opened(tmp_path)
    assert not file.is_recent(0), "from an earlier run"
    file.append([CONTENT])
    assert file.is_recent(SIZE)
    assert not file.is_recent(SIZE - 1)
    other = disk.open("other")
    other.append([bytes(RECENT_BYTES - SIZE)])
    assert file.is_recent(SIZE)
    other.append([b"x"])
    assert not file.is_recent(SIZE), "much was written since, also if it went to another file"
    assert file.is_recent(SIZE + 1)
    file.truncate(100)
    file.append([CONTENT])
    assert file.is_recent(100)
    assert not file.is_recent(99)
