"""`tidelog simulate --story` and `--mutant`: their output and their error messages."""

from pathlib import Path

import pytest

from tidelog.cli.main import run
from tidelog.sim.mutants import MUTANTS
from tidelog.sim.story import library

SHORT = "# Nothing happens\n\nbrokers 1\ntopic orders on 1\nwrite 2\nexpect lost 0\n"


def test_a_story_is_told_and_its_page_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story, html = tmp_path / "short.story", tmp_path / "short.html"
    story.write_text(SHORT)

    assert run(["simulate", "--story", str(story), "--html", str(html)]) == 0

    output = capsys.readouterr().out
    assert output.startswith("Nothing happens\n")
    assert "  2 acknowledged\n" in output
    assert "All expectations are met." in output
    assert "<title>Nothing happens</title>" in html.read_text()


def test_a_story_that_does_not_come_true_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "short.story"
    story.write_text(SHORT.replace("lost 0", "lost 2"))

    assert run(["simulate", "--story", str(story)]) == 1

    assert "FAILED, line 6: expect lost 2: lost 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SHORT.replace("write 2", "rite 2"), "line 5: no step begins with 'rite'; did you mean"),
        (SHORT.replace("brokers 1\n", "brokers 1\nmutant ant\n"), "line 4: no mutant is called"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "short.story"
    story.write_text(text)

    assert run(["simulate", "--story", str(story)]) == 1

    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--story", "none"], "there is no story 'none'; --story list names them."),
        (["--mutant", "ant"], "there is no mutant 'ant'; --mutant list names them."),
    ],
)
def test_a_name_that_nothing_has(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_lists_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--mutant", "list"]) == 0
    mutants = capsys.readouterr().out
    assert all(name in mutants for name in MUTANTS)

    assert run(["simulate", "--story", "list"]) == 0
    stories = capsys.readouterr().out
    assert all(name in stories for name in library.names())

    assert run(["simulate", "--story", "help"]) == 0
    language = capsys.readouterr().out
    assert "kill <nodes>" in language
    assert "expect <condition>" in language


def test_a_mutant_is_tried_by_its_story_and_by_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["simulate", "--mutant", "same-session", "--seeds", "2", "--jobs", "1"]

    assert run(asked) == 0

    output = capsys.readouterr().out
    assert "today's rule  passes" in output
    assert "the mutant    caught, line" in output
    assert "Random seeds from 0 on, at most 2:" in output
