"""`tidelog format`: writes meta.properties to log directories, as kafka-storage format does."""

import re

import click

from tidelog.cli import options
from tidelog.clusters.first_voters import Choice, FirstVoters
from tidelog.clusters.formatting import format_directories
from tidelog.clusters.node_settings import load_settings

_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@click.command("format")
@click.option("-c", "--config", required=True, metavar="FILE", help="The node's server.properties.")
@click.option("-t", "--cluster-id", metavar="ID", help="The cluster's id; a new one if left out.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Skip directories formatted before.")
@click.option("-s", "--standalone", is_flag=True, help="This controller is the only first voter.")
@click.option("-N", "--no-initial-controllers", is_flag=True, help="Add this controller later.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The first voters; give the same list on each of them.",
)
@click.option("--override", multiple=True, metavar="KEY=VALUE", help="Replace a key of the file.")
def command(
    config: str,
    cluster_id: str | None,
    ignore_formatted: bool,
    standalone: bool,
    no_initial_controllers: bool,
    initial_controllers: str | None,
    override: tuple[str, ...],
) -> None:
    """Prepare the log directories of a node, once, before its first start.

    Every node of a cluster is formatted with the same --cluster-id. A controller without
    controller.quorum.voters needs the initial voters; they can change later.
    """
    overrides = dict(options.key_value("--override", one) for one in override)
    settings = load_settings(config, overrides)
    if cluster_id is not None and not _CLUSTER_ID.fullmatch(cluster_id):
        raise click.UsageError(
            f"--cluster-id: {cluster_id!r} is not 22 letters of base64; "
            "`tidelog random-uuid` makes one"
        )
    choice = Choice(standalone, no_initial_controllers, initial_controllers)
    first = FirstVoters.chosen(settings, choice)
    made = format_directories(settings, cluster_id, first, ignore_formatted=ignore_formatted)
    for directory in made:
        click.echo(f"Formatting log directory {directory}.")
    if not made:
        click.echo("All of the log directories are already formatted.")
