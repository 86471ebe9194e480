"""`tidelog up --tables` also runs `tables run`, and stops it before the brokers."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.foreground import TIDELOG, Up, tidelog
from tests.cluster.ports import first_free_port
from tests.pipelines.chaos import PATIENCE_SECONDS


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path / "data", first_free_port(1), options=("--tables",))
    yield started
    started.end()


def await_seen(up: Up, look: Callable[[], Any]) -> Any:
    """Repeat `look` until it returns something; Spark may take minutes on a busy machine."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        log = up.directory / "tables.log"
        assert time.monotonic() < deadline, log.read_text() if log.exists() else "no log"
        time.sleep(0.1)
    return seen


def test_a_topic_is_a_table_beside_the_brokers(up: Up) -> None:
    bootstrap, out = up.bootstrap(), up.directory / "tables"
    assert up.process.stdout is not None
    block = [next(up.process.stdout) for _ in range(6)]
    assert any(line.startswith(f"tables    {out} (`") for line in block)
    enabled = ("--topic", "t", "--config", "tidelog.table.enable=true")
    tidelog("topics", "--create", *enabled, "--bootstrap-server", bootstrap)
    subprocess.run(
        [*TIDELOG, "produce", "--topic", "t", "--bootstrap-server", bootstrap],
        input='{"id":1}\n{"id":2}\n',
        text=True,
        check=True,
    )
    lock, states = out / ".tidelog.lock", out / "_tables.json"
    pid = await_seen(up, lambda: lock.read_text() if lock.exists() else "")
    os.kill(int(pid), signal.SIGKILL)

    def state() -> dict[str, Any]:
        found = json.loads(states.read_text())["tables"] if states.exists() else {}
        return dict(found.get("t", {}))

    await_seen(up, lambda: state().get("rows") == 2)
    where = ("--out", str(out), "--bootstrap-server", bootstrap)
    (listed,) = json.loads(tidelog("tables", *where, "--json"))
    assert (listed["topic"], listed["state"], listed["rows"], listed["lag"]) == (
        "t",
        "running",
        2,
        0,
    )
    up.process.send_signal(signal.SIGINT)
    said = up.process.communicate()[1]
    assert up.process.returncode == 0
    assert "WARNING `tables run` ended with status -9 and is started again now" in said
    assert "Traceback" not in (up.directory / "tables.log").read_text()
    assert state()["state"] == "waiting"
