"""`tidelog stray` lists and restores set-aside directories, on real files."""

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from tidelog.cli.commands import invoke
from tidelog.log.checkpoints import partition_metadata
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.directory import LogDirectory
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk

ID, OTHER = UUID(int=5), UUID(int=6)
PARTITION = TopicPartition("orders", 0)
STRAY = f"orders-0.{ID.hex}-stray"
LOG = f"{0:020d}.log"


def directory(root: Path, name: str, content: bytes = b"records") -> Path:
    path = root / name
    path.mkdir()
    (path / LOG).write_bytes(content)
    (path / "partition.metadata").write_bytes(partition_metadata.encode(ID, 0))
    return path


def test_strays_and_damaged_ones_in_place_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory(tmp_path, STRAY)
    directory(tmp_path, "sound-0")
    (directory(tmp_path, "held-0") / "partition.metadata").write_bytes(b"\xff\xff")

    assert invoke(["stray", "--dir", str(tmp_path)]) == 0

    held, stray = capsys.readouterr().out.splitlines()
    assert held.startswith("held-0: held-0, 7 bytes, topic id unknown, in its place")
    assert stray == f"{STRAY}: orders-0, 7 bytes, topic id AAAAAAAAAAAAAAAAAAAABQ, set aside"


def test_nothing_set_aside_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["stray", "--dir", str(tmp_path), "list"]) == 0
    assert capsys.readouterr().out == "No directory has been set aside.\n"


def test_a_stray_is_restored_for_the_topic_of_its_name(tmp_path: Path) -> None:
    directory(tmp_path, STRAY)
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":3}')
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 7\n")

    assert invoke(["stray", "--dir", str(tmp_path), "restore", STRAY]) == 0

    assert (tmp_path / "orders-0" / LOG).read_bytes() == b"records"
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    opened = LogDirectory(RealDisk(str(tmp_path)), SystemDice())
    assert not opened.clean_shutdown, "it would be trusted to be in sync"
    assert opened.strays == []
    assert opened.belongs_to(PARTITION, OTHER) is Belonging.YES
    assert opened.topic_id(PARTITION) == OTHER


def test_an_empty_log_gives_way_and_one_with_records_does_not(tmp_path: Path) -> None:
    directory(tmp_path, STRAY)
    empty = directory(tmp_path, "orders-0", b"")
    assert invoke(["stray", "--dir", str(tmp_path), "restore", STRAY]) == 0
    assert (empty / LOG).read_bytes() == b"records"

    again = f"orders-0.{OTHER.hex}-stray"
    directory(tmp_path, again)
    with pytest.raises(UserError, match="there is another one with records"):
        invoke(["stray", "--dir", str(tmp_path), "restore", again])
    assert (tmp_path / again / LOG).exists()


@pytest.mark.parametrize("name", ["nope", "../else", "nope-0"])
def test_what_is_not_there_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="has no directory"):
        invoke(["stray", "--dir", str(tmp_path), "restore", name])


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    """Another process holds the lock, because a process can lock its own locked file again."""
    directory(tmp_path, STRAY)
    hold = (
        "import sys; from tidelog.runtime.process import lock_directory;"
        f"lock_directory({str(tmp_path)!r}); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UserError, match="stop the node first"):
            invoke(["stray", "--dir", str(tmp_path), "restore", STRAY])
    finally:
        holder.communicate()
    assert (tmp_path / STRAY).exists()
