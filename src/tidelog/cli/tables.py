"""`tidelog tables`: topics as tables. `run` writes the tables with Spark, `list` shows their state.

The listing needs no Spark, because `run` writes the states to a file, and brokers report offsets.
"""

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tidelog.cli import options
from tidelog.cli.finding import found_bootstrap, found_directory
from tidelog.cli.output.tables_report import as_json, as_text, table_rows
from tidelog.cli.pipeline import start_module
from tidelog.client import admin
from tidelog.client.administration.config_admin import describe_configs
from tidelog.client.client import Client
from tidelog.client.replica_offsets import high_watermarks
from tidelog.config.resource_type import ResourceType
from tidelog.model.ids import Offset, TopicPartition
from tidelog.model.user_error import NoBrokerReached, UserError

JOB = "tidelog_pipelines.jobs.topic_tables.run"
DIRECTORY = "tables"
"""The name of the tables' directory in a cluster's directory, unless --out names another one."""
STATES, LOCK = "_tables.json", ".tidelog.lock"

F = TypeVar("F", bound=Callable[..., Any])


def _listing(command: F) -> F:
    for option in (
        click.option("--json", "is_json", is_flag=True, help="Print a list of JSON objects."),
        # The option has no default, because `tables run` finds its cluster itself.
        click.option(
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            envvar="TIDELOG_BOOTSTRAP_SERVER",
            show_envvar=True,
            help=f"The addresses of brokers.  [default: {options.NOT_GIVEN}]",
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="The --out of `tables run`.  [default: the tables of the running cluster]",
        ),
    ):
        command = option(command)
    return command


@click.group("tables", invoke_without_command=True)
@_listing
@click.pass_context
def command(context: click.Context, out: Path | None, bootstrap_server: str, is_json: bool) -> None:
    """Show the tables of topics. `tables run` keeps them, with Spark.

    A topic becomes a table by its configuration tidelog.table.enable=true. `tidelog up --tables`
    runs `tables run` beside the brokers.
    """
    context.obj = (out, bootstrap_server, is_json)
    if context.invoked_subcommand is None:
        show(out, bootstrap_server, is_json=is_json)


@command.command("list")
@_listing
@click.pass_context
def list_tables(
    context: click.Context, out: Path | None, bootstrap_server: str | None, is_json: bool
) -> None:
    """List each table with its state, its rows, and its lag."""
    given_out, given_server, is_given_json = context.obj  # the options before `list`
    show(out or given_out, bootstrap_server or given_server, is_json=is_json or is_given_json)


@command.command(
    "run",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    help="Keep a table of each table topic, until Ctrl-C.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> None:
    start_module(JOB, "tables run", arguments)


def show(out: Path | None, bootstrap: str | None, *, is_json: bool) -> None:
    """Print the tables. If no broker answers, the lag is unknown."""
    directory = out or _default_out()
    states = read_states(directory) if directory is not None else None
    modes: Mapping[str, str] = {}
    ends: Mapping[TopicPartition, Offset] = {}
    try:
        with Client(bootstrap or found_bootstrap(), options.PATIENCE_SECONDS) as client:
            modes, ends = _of_cluster(client, states or {})
    except NoBrokerReached as failure:
        if states is None:
            raise
        options.tell(str(failure))
    is_kept = directory is not None and is_locked(directory / LOCK)
    if not is_kept:
        where = "" if directory is None else f" to {directory}"
        options.tell(f"no `tables run` writes{where}, so the tables wait.")
    rows = list(table_rows(states or {}, modes, ends, is_kept=is_kept))
    if is_json:
        click.echo(as_json(rows))
    elif rows:
        click.echo("\n".join(as_text(rows)))
    else:
        options.tell("no topic is a table; tidelog.table.enable=true makes a table of one.")


def _default_out() -> Path | None:
    directory = found_directory() / DIRECTORY
    return directory if directory.is_dir() else None


def read_states(directory: Path) -> dict[str, Any] | None:
    """The state of each table by topic, from the file of `tables run`; None if it is missing."""
    file = directory / STATES
    try:
        found: dict[str, Any] = json.loads(file.read_text())["tables"]
        return found
    except FileNotFoundError:
        if not directory.is_dir():
            raise UserError(f"{directory} does not exist.") from None
        return None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file} is not a state file of `tables run`.") from None


def _of_cluster(
    client: Client, states: Mapping[str, Any]
) -> tuple[dict[str, str], dict[TopicPartition, Offset]]:
    """The mode of each topic that is configured as a table, and the log ends of these topics."""
    topics = [topic.name for topic in admin.topics(client) if not topic.is_internal]
    modes = {}
    described = describe_configs(client, ResourceType.TOPIC, topics) if topics else {}
    for topic, configs in described.items():
        values = {config.name: config.value for config in configs}
        if values.get("tidelog.table.enable") == "true":
            modes[topic] = values.get("tidelog.table.mode") or "append"
    wanted = [topic for topic in topics if topic in states or topic in modes]
    return modes, high_watermarks(client, wanted)


def is_locked(file: Path) -> bool:
    """Whether a process holds the lock of a directory of tables."""
    try:
        opened = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False
