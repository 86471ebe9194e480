"""Without a terminal a long task prints its progress now and then, only to stderr."""

import pytest

from tidelog.cli.output import progress
from tidelog.cli.output.progress import EVERY_SECONDS


def test_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    with progress.progress("simulating", 200) as tell:
        for _ in range(6):
            now += EVERY_SECONDS / 2
            tell(10, "all is well")

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "simulating: 10 % after 15 s, about 135 s left, all is well",
        "simulating: 20 % after 30 s, about 120 s left, all is well",
        "simulating: 30 % after 45 s, about 105 s left, all is well",
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress("simulating", 3) as tell:
        tell(3)
    assert capsys.readouterr() == ("", "")
