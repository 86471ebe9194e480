"""The list of running clusters comes from files that `up` writes to the user's state directory."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tidelog.cli.finding import DEFAULT_BOOTSTRAP, found_bootstrap, found_directory, with_hint
from tidelog.clusters import control
from tidelog.clusters.running_clusters import forget, remember, running_clusters
from tidelog.model.user_error import UserError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path / "state" / "tidelog" / "clusters"


def test_a_cluster_is_known_from_its_start_to_its_end(state: Path) -> None:
    assert running_clusters() == []
    remember(Path("a"), "127.0.0.1:12092,127.0.0.1:12093")
    (one,) = running_clusters()
    assert (one.directory, one.bootstrap, one.pid) == (
        Path.cwd() / "a",
        "127.0.0.1:12092,127.0.0.1:12093",
        os.getpid(),
    )
    assert (one.shown_directory, one.port) == ("a", "12092")
    forget(Path("a"))
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("change", ["pid", "started", "garbage"])
def test_a_stale_file_is_ignored_and_removed(state: Path, change: str) -> None:
    remember(Path("a"), "127.0.0.1:12092")
    (file,) = state.iterdir()
    noted = json.loads(file.read_text())
    if change == "pid":
        with subprocess.Popen(["true"]) as ended:
            ended.wait()
        noted["pid"] = ended.pid
    elif change == "started":
        noted["started"] += 1
    file.write_text("[" if change == "garbage" else json.dumps(noted))
    assert running_clusters() == []
    assert not file.exists()


def test_a_state_directory_that_cannot_be_written_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember(Path("a"), "127.0.0.1:12092")
    forget(Path("a"))
    assert running_clusters() == []


def test_the_only_running_cluster_is_found() -> None:
    assert (found_bootstrap(), found_directory()) == (DEFAULT_BOOTSTRAP, Path("tidelog-data"))
    remember(Path("a"), "127.0.0.1:12092")
    assert (found_bootstrap(), found_directory()) == ("127.0.0.1:12092", Path.cwd() / "a")


def test_of_several_clusters_the_default_one_is_found_and_otherwise_none() -> None:
    remember(Path("a"), "127.0.0.1:12092")
    remember(Path("b"), "127.0.0.1:12192")
    with pytest.raises(UserError, match=r"in a \(port 12092\) and b \(port 12192\): choose one"):
        found_bootstrap()
    assert found_directory() == Path("tidelog-data")
    remember(Path("c"), f"{DEFAULT_BOOTSTRAP},127.0.0.1:9093")
    assert found_bootstrap() == DEFAULT_BOOTSTRAP
    remember(Path("tidelog-data"), "127.0.0.1:12292")
    assert found_bootstrap() == "127.0.0.1:12292"


def test_a_command_on_the_wrong_directory_is_told_where_clusters_run() -> None:
    printed = "no cluster is running in wrong; "
    with pytest.raises(UserError, match=f"{printed}`tidelog up` starts one."):
        control.ask(Path("wrong"), "list")
    remember(Path("a"), "127.0.0.1:12092")
    with pytest.raises(
        UserError, match=rf"{printed}one is running in a \(port 12092\): use --dir a."
    ):
        control.ask(Path("wrong"), "list")
    remember(Path("b"), "127.0.0.1:12192")
    with pytest.raises(UserError, match=rf"{printed}clusters are running in .*: choose one with"):
        control.ask(Path("wrong"), "list")


def test_a_command_at_the_wrong_address_is_told_where_clusters_run() -> None:
    refused = UserError("no broker can be reached (127.0.0.1:9092: Connection refused).")
    assert str(with_hint(refused)).endswith("`tidelog up` starts a cluster on this machine.")
    remember(Path("a"), "127.0.0.1:12092,127.0.0.1:12093")
    assert str(with_hint(refused)) == (
        "no broker can be reached (127.0.0.1:9092: Connection refused). One is running in a "
        "(port 12092): use --bootstrap-server 127.0.0.1:12092,127.0.0.1:12093."
    )
    itself = UserError("no broker can be reached (127.0.0.1:12092: Connection refused).")
    assert str(with_hint(itself)) == str(itself), "there is no other one"
