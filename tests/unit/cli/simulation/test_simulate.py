"""The command `tidelog simulate`: its output, its exit status and its error messages."""

import pytest

from tidelog.cli.main import run


def test_one_seed_prints_its_summary_and_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--seed", "3", "--seconds", "5", "--nodes", "3"]) == 0

    output = capsys.readouterr().out
    assert "seeds        1 (nodes: 1 with 3)" in output
    assert "failures     none" in output
    assert "leader completeness" in output
    assert "trace        " in output


def test_many_seeds_print_one_summary(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "--seeds", "2", "--seconds", "3", "--jobs", "1", "--faults", "kill"]
    assert run(command) == 0

    output = capsys.readouterr().out
    assert "seeds        2" in output
    assert "times as fast as real time" in output


def test_only_some_of_a_seeds_faults_can_be_struck(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--seed", "3", "--seconds", "5", "--only", "none"]) == 0
    assert "faults       none" in capsys.readouterr().out


def test_the_kinds_of_fault_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--list-faults"]) == 0
    assert "power-loss      the machine loses power" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence", "status"),
    [
        (["--seed", "1", "--seeds", "2"], "give one of --seed, --seeds and --minutes", 2),
        (["--only", "1"], "--only goes with --seed", 2),
        (["--faults", "flood"], "there is no kind of fault 'flood'", 1),
        (["--seed", "1", "--only", "x"], "--only takes numbers separated by commas, not x", 1),
        (["--seed", "1", "--only", "9999"], "--only: seed 1 has fewer faults", 1),
    ],
)
def test_a_mistake_is_one_sentence(
    arguments: list[str], sentence: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", *arguments]) == status
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
