"""Clock, dice, alarm, log filter and directory locks."""

import logging
import select
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from pathlib import Path
from time import time

import pytest

from tidelog.runtime.alarm import Alarm
from tidelog.runtime.clock import HostClock
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.logs import SAME_PER_SECOND, RepeatedLineFilter
from tidelog.runtime.process import CannotStart, lock_directory


def test_the_clock_agrees_with_the_wall_and_does_not_go_back() -> None:
    before = int(time() * 1000)
    now = HostClock()
    read = [now() for _ in range(1000)]
    assert read == sorted(read)
    assert before - 1 <= read[0] <= read[-1] <= time() * 1000 + 1


def test_dice_fall_on_every_side() -> None:
    assert set(Counter(SystemDice().below(6) for _ in range(2000))) == set(range(6))
    assert SystemDice().below(1) == 0


def test_ids_never_begin_with_a_dash() -> None:
    drawn = {SystemDice().uuid() for _ in range(2000)}
    assert len(drawn) == 2000
    assert {one.version for one in drawn} == {4}
    assert not any(urlsafe_b64encode(one.bytes).startswith(b"-") for one in drawn)


def test_an_alarm_rings_until_it_is_quieted() -> None:
    alarm = Alarm()

    def is_ringing() -> bool:
        return bool(select.select([alarm], [], [], 0)[0])

    assert not is_ringing()
    for _ in range(100_000):  # more than the socket's buffer holds
        alarm.ring()
    assert is_ringing()
    alarm.quiet()
    assert not is_ringing()
    alarm.close()
    alarm.ring()


def test_a_flood_of_one_kind_of_line_is_cut_and_counted() -> None:
    second = 0
    seen = RepeatedLineFilter(lambda: second * 1000)

    def passes(message: str) -> str | None:
        record = logging.LogRecord("x", logging.INFO, "", 0, message, ("peer",), None)
        return record.getMessage() if seen.filter(record) else None

    lines = [passes("%s: closed") for _ in range(SAME_PER_SECOND + 90)]
    assert lines.count("peer: closed") == SAME_PER_SECOND
    assert passes("%s: another") == "peer: another"
    second = 1
    assert passes("%s: closed") == "peer: closed (90 similar lines were omitted)"
    assert passes("%s: closed") == "peer: closed"


def test_a_directory_locked_by_another_process_is_refused(tmp_path: Path) -> None:
    hold = (
        "import sys\n"
        "from tidelog.runtime.process import lock_directory\n"
        "lock_directory(sys.argv[1]); print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(CannotStart, match="is in use by another process"):
            lock_directory(str(tmp_path))
        other.communicate()
    lock_directory(str(tmp_path))


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="cannot be used: Not a directory"):
        lock_directory(str(tmp_path / "file" / "logs"))
