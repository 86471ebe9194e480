"""Without a terminal no line is rewritten, and the status is printed every few seconds."""

import pytest

from tidelog.cli.demos import screen
from tidelog.cli.demos.screen import Screen


def test_lines_have_the_time_and_tables_stand_below_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Screen()
    shown.say("Begin.")
    shown.show(["a  b"])
    assert capsys.readouterr().out == "  0.0 s Begin.\n        a  b\n"


def test_a_title_is_underlined_and_an_empty_line_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Screen()
    shown.title("The count")
    shown.show([""])
    assert capsys.readouterr().out == "\nThe count\n---------\n\n"


def test_how_things_stand_is_printed_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Screen()
    shown.status("writing")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(screen, "EVERY_SECONDS", 0.0)
    shown.status("writing")
    assert capsys.readouterr().out == "  0.0 s writing\n"
