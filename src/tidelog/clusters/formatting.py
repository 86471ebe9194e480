"""Formats the log directories of a node: writes cluster id, node id and directory id."""

from base64 import urlsafe_b64encode
from pathlib import Path
from uuid import UUID

from tidelog.clusters.first_voters import FirstVoters, write_first_voters
from tidelog.config.settings import BrokerSettings
from tidelog.log.checkpoints import checkpoints
from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY, partition_of
from tidelog.model.ids import NodeId
from tidelog.model.user_error import UserError
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk


def new_cluster_id() -> str:
    return urlsafe_b64encode(SystemDice().uuid().bytes).decode().rstrip("=")


def format_directories(
    settings: BrokerSettings,
    cluster_id: str | None,
    first: FirstVoters | None = None,
    *,
    ignore_formatted: bool,
) -> list[str]:
    """Write meta.properties to each directory that lacks it, and return these directories."""
    first = first or FirstVoters()
    directories = list(dict.fromkeys((*settings.log_dirs, settings.metadata_log_dir)))
    formatted = {path: read_identity(path) for path in directories if _is_formatted(path)}
    if formatted and not ignore_formatted:
        raise UserError(
            f"Log directory {next(iter(formatted))} is already formatted. "
            "Use --ignore-formatted to ignore this directory and format the others."
        )
    for path, identity in formatted.items():
        cluster_id = cluster_id or identity.get("cluster.id")
        _check_same(path, identity, cluster_id, settings.node_id)
    cluster_id = cluster_id or new_cluster_id()
    missing = [path for path in directories if path not in formatted]
    for path in missing:
        # Only the user of the node may read records and the keys of users.
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        directory_id = SystemDice().uuid()
        if path == settings.metadata_log_dir:
            directory_id = first.my_directory or directory_id
            write_first_voters(path, first, settings, directory_id)
        _write_identity(path, cluster_id, settings.node_id, directory_id)
    return missing


def read_identity(directory: str) -> dict[str, str]:
    """The content of the copy of meta.properties, or of the file if the copy is not valid."""
    if not _is_formatted(directory):
        raise FileNotFoundError(f"{directory}/{META_PROPERTIES}")
    disk = RealDisk(directory)
    meta = checkpoints.read_meta_copy(disk) or checkpoints.read_meta_properties(disk)
    if meta is None:
        raise UserError(
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
        raise UserError(
            f"{directory} holds partitions ({held[0]}), but no meta.properties: "
            "restore the file, or move the partitions away and restore them with `tidelog stray`."
        )
    return False


def _names_in(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir()) if path.is_dir() else []


def _check_same(
    path: str, identity: dict[str, str], cluster_id: str | None, node_id: NodeId
) -> None:
    if identity.get("cluster.id") != cluster_id:
        raise UserError(
            f"{path} belongs to the cluster {identity.get('cluster.id')}, not to {cluster_id}."
        )
    if identity.get("node.id") != str(node_id):
        raise UserError(f"{path} belongs to node {identity.get('node.id')}, not to {node_id}.")


def _write_identity(directory: str, cluster_id: str, node_id: NodeId, directory_id: UUID) -> None:
    meta = checkpoints.MetaProperties(cluster_id, node_id, directory_id)
    checkpoints.write_meta_properties(RealDisk(directory), meta)
