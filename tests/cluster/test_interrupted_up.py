"""`tidelog up` is interrupted at a line of its start log, then started again (F17)."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.foreground import TIDELOG, Up, tidelog
from tests.cluster.interruptions import (
    ALARMS,
    interrupted,
    kill_all,
    kill_up,
    stop_in_order,
    stop_twice,
)
from tests.cluster.ports import first_free_port

RECORDS = [f"record {number}" for number in range(20)]
LINES = (2, 5, 8)
"""The log lines at which a start is interrupted: during the election or the registration."""


def check_quiet(lines: list[str]) -> None:
    assert not [line for line in lines if any(alarm in line for alarm in ALARMS)], lines


@pytest.mark.parametrize("interrupt", [stop_in_order, stop_twice, kill_all, kill_up])
def test_f17_an_interrupted_start_is_no_unclean_end(
    tmp_path: Path, interrupt: Callable[["subprocess.Popen[str]"], None]
) -> None:
    directory, port = tmp_path / "data", first_free_port(3)
    first = Up(directory, port, brokers=3)
    bootstrap = first.bootstrap()
    tidelog("topics", "--create", "--topic", "t", "--bootstrap-server", bootstrap)
    subprocess.run(
        [*TIDELOG, "produce", "--topic", "t", "--bootstrap-server", bootstrap],
        input="".join(f"{record}\n" for record in RECORDS),
        text=True,
        check=True,
    )
    assert first.end() == 0

    for line in LINES:
        check_quiet(list(interrupted(directory, port, line, interrupt)))

    last = Up(directory, port, brokers=3)
    bootstrap = last.bootstrap()
    read = ("--from-beginning", "--max-messages", str(len(RECORDS)))
    printed = tidelog("consume", "--topic", "t", *read, "--bootstrap-server", bootstrap)
    last.process.send_signal(signal.SIGINT)
    _, errors = last.process.communicate()
    assert printed.splitlines() == RECORDS
    check_quiet(errors.splitlines())
