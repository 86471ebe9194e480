"""Suggestions for mistyped names, and the examples at the end of every --help."""

import shlex
from collections.abc import Iterator

import click
import pytest

from tidelog.cli.commands import COMMANDS, cli, invoke
from tidelog.cli.help.examples import EXAMPLES
from tidelog.cli.help.suggestions import did_you_mean
from tidelog.cli.main import reported


def test_near_names_and_names_that_contain_it_are_suggested() -> None:
    assert did_you_mean("leader", ["leader-crash", "x"]) == ". Did you mean 'leader-crash'?"
    assert did_you_mean("ab1", ["ab2", "ab3", "z"]) == ". Did you mean 'ab3' or 'ab2'?"
    assert did_you_mean("quite different", ["x"]) == "."


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("toppics", "topics"),
        ("grops --list", "groups"),
        ("kafka-consumer-groups.sh --list", "groups"),
        ("leader-election", "elect"),
        ("kafka-topics", "topics"),
        ("features upgrad", "upgrade"),
        ("perf prodce", "produce"),
        ("groups --to-earlist", "--to-earliest"),
        ("reassign --reassignment-json", "--reassignment-json-file"),
        ("completion bsh", "bash"),
        ("node kil 2", "kill"),
        ("pipeline ingst", "ingest"),
        ("cluster descrbe", "describe"),
        ("whatif --fault leader-crsh", "leader-crash"),
        ("stray --dir x restor", "restore"),
        ("simulate --workload ligt", "light"),
        ("simulate --story a_leader_dies", "a_leader_dies_and_a_follower_takes_over"),
        ("simulate --mutant truncate-to-wh", "truncate-to-hw"),
        ("topics --partitons 3", "--partitions"),
    ],
)
def test_a_mistyped_name_is_answered_by_near_ones(
    arguments: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reported(lambda: invoke(arguments.split())) in (1, 2)
    printed = capsys.readouterr().err
    assert "Did you mean " in printed
    assert f"'{meant}'" in printed.partition("Did you mean ")[2]


def paths() -> Iterator[tuple[str, ...]]:
    root = click.Context(cli)
    for name in COMMANDS:
        yield (name,)
        command = cli.get_command(root, name)
        if isinstance(command, click.Group):
            for one in command.list_commands(click.Context(command)):
                yield (name, one)


@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
def test_the_help_of_every_command_ends_with_an_example_that_parses(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    example = EXAMPLES[" ".join(path)]
    words = shlex.split(example.partition(" | ")[2] or example)
    assert words[0] == "tidelog"
    command: click.Command | None = cli
    for word in (arguments := words[1:])[: len(path)]:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    context = click.Context(command, **command.context_settings)
    command.make_parser(context).parse_args(arguments[len(path) :])
    is_job = path[0] == "pipeline" and path[-1] not in ("pipeline", "demo")
    if not is_job and path != ("tables", "run"):  # test_pipeline.py tests the help of jobs
        assert invoke([*path, "--help"]) == 0
        assert " ".join(capsys.readouterr().out.splitlines()[-1].split()) == example
