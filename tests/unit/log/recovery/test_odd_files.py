"""Directories and links in place of files in a log directory, on real files."""

import shutil
from pathlib import Path

from tests.unit.log.support import NOW, SMALL, append, base_offsets, batch

from tidelog.log.directory import LogDirectory
from tidelog.model.ids import TopicId, TopicPartition
from tidelog.runtime.files.disk import RealDisk
from tidelog.sim.machines.dice import SeededDice

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


def test_f54_a_directory_named_like_a_file_is_set_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    partition = tmp_path / "orders-0"
    found = [f"{7:020d}.log", f"{7:020d}.index", f"{8:020d}.snapshot", "partition.metadata"]
    found += ["leader-epoch-checkpoint.tmp", f"{7:020d}.log.deleted"]
    for name in found:
        (partition / name).unlink(missing_ok=True)
        (partition / name).mkdir()
    directory = directory_at(tmp_path)
    log = directory.open(A, ID, SMALL, NOW)
    assert base_offsets(log) == list(range(60))
    for name in found:
        assert any(f"orders-0/{name} " in note for note in directory.notes)
        assert (partition / f"{name}.set-aside").is_dir()
    assert directory_at(tmp_path).notes == [], "they are left alone from then on"


def test_f54_a_directory_in_place_of_a_segment_is_a_hole(tmp_path: Path) -> None:
    filled(tmp_path)
    second = sorted((tmp_path / "orders-0").glob("*.log"))[1]
    second.unlink()
    second.mkdir()
    log = directory_at(tmp_path).open(A, ID, SMALL, NOW)
    [damage] = log.recovery.damages
    assert damage.first_offset == int(second.name[:20])
    assert not log.recovery.is_proven


def test_f54_a_link_to_nowhere_is_set_aside(tmp_path: Path) -> None:
    filled(tmp_path / "whole")
    for name in sorted(path.name for path in (tmp_path / "whole" / "orders-0").iterdir()):
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        path = tmp_path / name / "orders-0" / name
        path.unlink()
        path.symlink_to("nowhere")
        directory = directory_at(tmp_path / name)
        assert directory.partitions() == [A]
        directory.open(A, ID, SMALL, NOW).close()
        assert any(name in note for note in directory.notes), name


def test_f54_a_file_in_place_of_a_partition_is_kept_and_the_partition_made_anew(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    shutil.rmtree(tmp_path / "orders-0")
    (tmp_path / "orders-0").write_bytes(b"not a directory")
    (tmp_path / "orders-1").symlink_to("nowhere")
    directory = directory_at(tmp_path)
    assert directory.partitions() == []
    assert {note.split()[0] for note in directory.notes} >= {"orders-0", "orders-1"}
    log = directory.open(A, ID, SMALL, NOW)
    append(log, batch())
    assert not log.recovery.is_proven
    assert (tmp_path / "orders-0.set-aside").read_bytes() == b"not a directory"


def test_f59_a_directory_in_place_of_a_checkpoint_is_set_aside(tmp_path: Path) -> None:
    filled(tmp_path)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown", "metadata-log-mark"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name / "inside").mkdir(parents=True)
    directory = directory_at(tmp_path)
    assert len([note for note in directory.notes if "has the wrong file type" in note]) == 3
    assert not directory.clean_shutdown
    assert base_offsets(directory.open(A, ID, SMALL, NOW)) == list(range(60))
    directory.close({A: 60}, 9)


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
