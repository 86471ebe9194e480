"""Names in a log directory that are not what they seem: on real files."""

from pathlib import Path

from tests.unit.log.support import NOW, SMALL, append, base_offsets, batch

from tidelog.log.directory import LogDirectory
from tidelog.model.ids import TopicId, TopicPartition
from tidelog.runtime.disk import RealDisk
from tidelog.sim.dice import SeededDice

A = TopicPartition("orders", 0)
ID = TopicId(int=77)


def directory_at(path: Path) -> LogDirectory:
    return LogDirectory(RealDisk(path), SeededDice(1))


def filled(path: Path, count: int = 60) -> None:
    directory = directory_at(path)
    log = directory.open(A, ID, SMALL, NOW)
    for _ in range(count):
        append(log, batch(size=100))
    directory.close({A: count}, 9)


def test_f54_a_directory_named_like_a_segment_is_set_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "orders-0" / f"{7:020d}.log").mkdir()
    for name in (f"{7:020d}.index", f"{60:020d}.timeindex", f"{8:020d}.snapshot"):
        (tmp_path / "orders-0" / name).mkdir(exist_ok=True)
    log = directory_at(tmp_path).open(A, ID, SMALL, NOW)
    assert base_offsets(log) == list(range(60))
    assert any(f"{7:020d}.log" in note for note in log.recovery.notes)
    assert (tmp_path / "orders-0" / f"{7:020d}.log.set-aside").is_dir()


def test_f54_a_directory_in_place_of_a_segment_is_a_hole(tmp_path: Path) -> None:
    filled(tmp_path)
    second = sorted((tmp_path / "orders-0").glob("*.log"))[1]
    second.unlink()
    second.mkdir()
    log = directory_at(tmp_path).open(A, ID, SMALL, NOW)
    [damage] = log.recovery.damages
    assert damage.first_offset == int(second.name[:20])
    assert not log.recovery.is_proven


def test_f54_a_file_named_like_a_partition_is_none(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "orders-1").write_bytes(b"not a directory")
    assert directory_at(tmp_path).partitions() == [A]


def test_a_partition_may_be_a_link_and_goes_without_what_it_leads_to(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    filled(root)
    (root / "orders-0").rename(elsewhere)
    (root / "orders-0").symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(root)
    directory = directory_at(tmp_path / "link")
    log = directory.open(A, ID, SMALL, NOW)
    assert log.recovery.is_proven
    assert base_offsets(log) == list(range(60))
    directory.delete(A, NOW, 0)
    directory.purge(NOW)
    assert not (root / "orders-0").exists()
    assert elsewhere.is_dir()
