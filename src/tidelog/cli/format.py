"""`tidelog format`: gives a node's log directories their identity, as kafka-storage format does."""

import re
from pathlib import Path
from uuid import UUID

import click

from tidelog.cli import options
from tidelog.cli.errors import CommandFailed
from tidelog.cli.first_voters import Choice, FirstVoters, write_first_voters
from tidelog.cli.node_settings import load_settings
from tidelog.cli.random_uuid import new_cluster_id
from tidelog.controller.settings import BrokerSettings
from tidelog.log import checkpoints
from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY, partition_of
from tidelog.model.ids import NodeId
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.disk import RealDisk

_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@click.command("format")
@click.option("-c", "--config", required=True, metavar="FILE", help="The node's server.properties.")
@click.option("-t", "--cluster-id", metavar="ID", help="The cluster's id; a new one if left out.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Skip directories formatted before.")
@click.option("-s", "--standalone", is_flag=True, help="This controller alone votes at first.")
@click.option(
    "-N", "--no-initial-controllers", is_flag=True, help="This controller is to be added later."
)
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="Who votes at first; the same on each of them.",
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
    controller.quorum.voters is told who votes at first; later that can change.
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


def format_directories(
    settings: BrokerSettings,
    cluster_id: str | None,
    first: FirstVoters | None = None,
    *,
    ignore_formatted: bool,
) -> list[str]:
    """Write meta.properties where it is missing. -> the directories that were formatted."""
    first = first or FirstVoters()
    directories = list(dict.fromkeys((*settings.log_dirs, settings.metadata_log_dir)))
    formatted = {path: read_identity(path) for path in directories if _is_formatted(path)}
    if formatted and not ignore_formatted:
        raise CommandFailed(
            f"Log directory {next(iter(formatted))} is already formatted. "
            "Use --ignore-formatted to ignore this directory and format the others."
        )
    for path, identity in formatted.items():
        cluster_id = cluster_id or identity.get("cluster.id")
        _check_same(path, identity, cluster_id, settings.node_id)
    cluster_id = cluster_id or new_cluster_id()
    missing = [path for path in directories if path not in formatted]
    for path in missing:
        directory_id = SystemDice().uuid()
        if path == settings.metadata_log_dir:
            directory_id = first.my_directory or directory_id
            write_first_voters(path, first, settings, directory_id)
        _write_identity(path, cluster_id, settings.node_id, directory_id)
    return missing


def read_identity(directory: str) -> dict[str, str]:
    """What meta.properties says, or its copy where the file is damaged."""
    if not _is_formatted(directory):
        raise FileNotFoundError(f"{directory}/{META_PROPERTIES}")
    disk = RealDisk(directory)
    meta = checkpoints.read_meta_copy(disk) or checkpoints.read_meta_properties(disk)
    if meta is None:
        raise CommandFailed(
            f"{directory} has a meta.properties that cannot be read, and no sound copy of it: "
            "restore the file, with the cluster id, the node id and the directory id that it had."
        )
    return {
        "cluster.id": meta.cluster_id,
        "node.id": str(meta.node_id),
        "directory.id": checkpoints.encode_id(meta.directory_id),
        "version": "1",
    }


def _is_formatted(directory: str) -> bool:
    path = Path(directory)
    if (path / META_PROPERTIES).exists() or (path / META_PROPERTIES_COPY).exists():
        return True
    held = [name for name in _names_in(path) if partition_of(name) is not None]
    if held:
        raise CommandFailed(
            f"{directory} holds partitions ({held[0]}), but no meta.properties that says whose: "
            "restore the file, or move the partitions away and restore them with `tidelog stray`."
        )
    return False


def _names_in(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir()) if path.is_dir() else []


def _check_same(
    path: str, identity: dict[str, str], cluster_id: str | None, node_id: NodeId
) -> None:
    if identity.get("cluster.id") != cluster_id:
        raise CommandFailed(
            f"{path} belongs to the cluster {identity.get('cluster.id')}, not to {cluster_id}."
        )
    if identity.get("node.id") != str(node_id):
        raise CommandFailed(f"{path} belongs to node {identity.get('node.id')}, not to {node_id}.")


def _write_identity(directory: str, cluster_id: str, node_id: NodeId, directory_id: UUID) -> None:
    Path(directory).mkdir(parents=True, exist_ok=True)
    meta = checkpoints.MetaProperties(cluster_id, node_id, directory_id)
    checkpoints.write_meta_properties(RealDisk(directory), meta)
