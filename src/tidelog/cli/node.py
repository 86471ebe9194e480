"""`tidelog node`: single nodes of a running `tidelog up`, to try what their end or silence does."""

import json
from collections.abc import Callable
from pathlib import Path

import click

from tidelog.cli.output.table import table
from tidelog.clusters import control


@click.group("node")
def command() -> None:
    """Stop, kill, pause, resume and start single nodes of a running `tidelog up`."""


def _directory(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        default="tidelog-data",
        show_default=True,
        metavar="DIR",
        help="The directory of the cluster, as `tidelog up` was given it.",
    )(function)


def _verb(name: str, explanation: str) -> None:
    @command.command(name, help=explanation)
    @click.argument("node_id", metavar="ID", type=click.IntRange(min=0))
    @_directory
    def run(node_id: int, directory: Path) -> None:
        click.echo(control.ask(directory, f"{name} {node_id}"))


_verb("stop", "A controlled shutdown: leadership moves first. It stays down until `start`.")
_verb("kill", "SIGKILL, as a crash would. It stays down until `start`.")
_verb("pause", "SIGSTOP: it stands still with its connections open, as in a long collection pause.")
_verb("resume", "SIGCONT: a paused node goes on.")
_verb("start", "Start a node that is down.")


@command.command("list")
@_directory
def list_nodes(directory: Path) -> None:
    """The nodes, and whether each is starting, up, paused, stopping or down."""
    nodes = json.loads(control.ask(directory, "list"))
    rows = [(str(one["id"]), one["state"], str(one["pid"] or "-")) for one in nodes]
    for line in table(("NODE", "STATE", "PID"), rows):
        click.echo(line)
