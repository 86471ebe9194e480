"""The commands that docs/coming-from-kafka.md lists exist, and take the options that it shows."""

import re
import shlex
from pathlib import Path

import click
import pytest

from tidelog.cli.commands import cli
from tidelog.cli.help.suggestions import KAFKA_TOOLS

PAGE = (Path(__file__).parents[4] / "docs/coming-from-kafka.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]
LISTED = [command for row in ROWS for command in re.findall(r"`tidelog ([^`]+)`", row)]


@pytest.mark.parametrize("line", LISTED)
def test_listed_command_parses(line: str) -> None:
    words = shlex.split(line)
    command: click.Command | None = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, line
    command.make_parser(click.Context(command)).parse_args(words)


@pytest.mark.parametrize("name", sorted({*KAFKA_TOOLS.values(), "topics", "features", "log-dirs"}))
def test_command_with_a_tool_of_kafka_is_listed(name: str) -> None:
    assert any(line.split()[0] == name for line in LISTED)
