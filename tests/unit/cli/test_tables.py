"""`tidelog tables` lists tables from a state file and from the cluster's offsets."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from tidelog.cli import pipeline, tables
from tidelog.cli.commands import invoke
from tidelog.cli.output.tables_report import as_json, as_text, table_rows
from tidelog.cli.tables import LOCK, STATES, is_locked
from tidelog.model.ids import TopicPartition

NOBODY = "127.0.0.1:1"
STATE = {
    "orders": {
        "state": "running",
        "error": "",
        "mode": "append",
        "rows": 12,
        "quarantined": 1,
        "offsets": {"0": 8, "1": 5},
        "last_batch": 1_700_000_000.5,
    },
    "old": {"state": "off", "mode": "append", "rows": 3, "offsets": {"0": 3}},
    "bad": {"state": "error", "error": "it is bad.", "mode": "append", "offsets": {}},
}
ENDS = {
    TopicPartition("orders", 0): 10,
    TopicPartition("orders", 1): 5,
    TopicPartition("new", 0): 4,
    TopicPartition("bad", 0): 0,
}


def test_each_table_is_one_line() -> None:
    rows = list(table_rows(STATE, {"orders": "append", "new": "upsert"}, ENDS, is_kept=True))
    assert list(as_text(rows)) == [
        "TOPIC   STATE    MODE    ROWS  QUARANTINED  LAG  LAST-BATCH            ERROR",
        "bad     error    append     0            0    0  -                     it is bad.",
        "new     waiting  upsert     0            0    4  -                     -",
        "old     off      append     3            0    -  -                     -",
        "orders  running  append    12            1    2  2023-11-14T22:13:20Z  -",
    ]
    assert json.loads(as_json(rows))[3] == {
        "topic": "orders",
        "state": "running",
        "mode": "append",
        "rows": 12,
        "quarantined": 1,
        "lag": 2,
        "last_batch": "2023-11-14T22:13:20Z",
        "error": None,
    }


def test_tables_wait_if_nothing_keeps_them_or_if_they_are_switched_on_again() -> None:
    states = {row.topic: row.state for row in table_rows(STATE, {}, {}, is_kept=False)}
    assert states == {"orders": "waiting", "old": "off", "bad": "error"}
    states = {
        row.topic: row.state for row in table_rows(STATE, {"old": "append"}, {}, is_kept=True)
    }
    assert states["old"] == "waiting"


def test_without_a_cluster_the_lag_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / STATES).write_text(json.dumps({"tables": STATE}))
    asked = ["tables", "--out", str(tmp_path), "--bootstrap-server", NOBODY, "--json"]
    assert invoke(asked) == 0
    printed = capsys.readouterr()
    assert {row["lag"] for row in json.loads(printed.out)} == {None}
    first, second = printed.err.splitlines()
    assert "no broker can be reached" in first
    assert second == f"tidelog: no `tables run` writes to {tmp_path}, so the tables wait."
    assert invoke([*asked, "list"]) == 0, "options may come before the command"
    assert capsys.readouterr().out == printed.out


@pytest.mark.parametrize("text", ["{", "[]", '{"tables": '])
def test_another_file_is_refused(
    tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from tidelog.cli.main import run

    (tmp_path / STATES).write_text(text)
    assert run(["tables", "list", "--out", str(tmp_path), "--bootstrap-server", NOBODY]) == 1
    assert "_tables.json is not a state file of `tables run`." in capfd.readouterr().err
    assert run(["tables", "--out", str(tmp_path / "absent"), "--bootstrap-server", NOBODY]) == 1
    assert capfd.readouterr().err == f"tidelog: {tmp_path / 'absent'} does not exist.\n"


def test_a_running_job_holds_the_lock(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / LOCK)
    held = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT)
    assert not is_locked(tmp_path / LOCK)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert is_locked(tmp_path / LOCK)
    os.close(held)
    assert not is_locked(tmp_path / LOCK)


def test_run_does_not_look_for_a_cluster_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def become(program: str, arguments: list[str]) -> None:
        started.append(arguments)
        raise SystemExit(0)

    def several() -> str:
        raise AssertionError("several clusters are running")

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr(pipeline, "prepare", lambda: None)
    monkeypatch.setattr(pipeline, "found_bootstrap", several)
    monkeypatch.setattr(tables, "found_bootstrap", several)
    with pytest.raises(SystemExit):
        invoke(["tables", "run", "--out", "lake", "--bootstrap-server", NOBODY])
    assert started[0][-5:] == [tables.JOB, "--out", "lake", "--bootstrap-server", NOBODY]
