"""`tidelog node`: stops, kills, pauses and starts single nodes of a running `tidelog up`."""

import json
from collections.abc import Callable
from pathlib import Path

import click

from tidelog.cli.finding import found_directory
from tidelog.cli.output.table import table
from tidelog.clusters import control


def _directory(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The directory of the cluster.  [default: tidelog-data, or the only running cluster]",
    )(function)


@click.group("node")
@_directory
@click.pass_context
def command(context: click.Context, directory: Path | None) -> None:
    """Stop, kill, pause, resume and start single nodes of a running `tidelog up`."""
    context.obj = directory


def _chosen(directory: Path | None) -> Path:
    """The directory that was given to the command or to its group, or else the default."""
    given: Path | None = click.get_current_context().obj
    return directory or given or found_directory()


def _verb(name: str, explanation: str) -> None:
    @command.command(name, help=explanation)
    @click.argument("node_id", metavar="ID", type=click.IntRange(min=0))
    @_directory
    def run(node_id: int, directory: Path | None) -> None:
        click.echo(control.ask(_chosen(directory), f"{name} {node_id}"))


_verb("stop", "Shut a node down; its leaderships move first. It stays down until `start`.")
_verb("kill", "Send SIGKILL to a node, like a crash. It stays down until `start`.")
_verb("pause", "Send SIGSTOP to a node: it hangs with open connections, like a long pause.")
_verb("resume", "Send SIGCONT to a paused node: it continues.")
_verb("start", "Start a node that is down.")


@command.command("list")
@_directory
def list_nodes(directory: Path | None) -> None:
    """List the nodes and the state of each: starting, up, paused, stopping or down."""
    nodes = json.loads(control.ask(_chosen(directory), "list"))
    rows = [(str(one["id"]), one["state"], str(one["pid"] or "-")) for one in nodes]
    for line in table(("NODE", "STATE", "PID"), rows):
        click.echo(line)
