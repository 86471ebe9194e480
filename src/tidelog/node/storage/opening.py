"""Reads a node's identity from its log directories, and voters and timeouts from the settings."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from tidelog.config.settings import BrokerSettings
from tidelog.controller.features import KRAFT_VERSIONS
from tidelog.log.checkpoints.checkpoints import (
    MetaProperties,
    read_meta_copy,
    read_meta_properties,
    write_meta_properties,
)
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY, partition_of
from tidelog.log.recovery import wrong_file_types
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.node.metadata.snapshot_schedule import SnapshotLimits
from tidelog.replication.quorum.state import QuorumTimeouts, ReplicaKey, Voter, VoterSet

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_ANYWHERE = ("", "0.0.0.0", "::")


class NotFormatted(Exception):
    """A log directory has no identity, or has the identity of another node or cluster."""


class OpenedDirectory(NamedTuple):
    meta: MetaProperties
    log_directory: LogDirectory


def open_directories(
    disks: Sequence[Disk | None], settings: BrokerSettings, dice: Dice
) -> list[OpenedDirectory | None]:
    """Open every log directory; the result contains None for a directory that cannot be used.

    The directory of the metadata log must be usable. All directories must belong to the same
    cluster and node. A new, empty directory gets this node's identity (KIP-858).
    """
    own = disks[home(settings)]
    assert own is not None
    cluster_id = _read_meta(own, settings).cluster_id
    metas: list[MetaProperties | None] = []
    for place, disk in enumerate(disks):
        fresh = MetaProperties(cluster_id, settings.node_id, dice.uuid())
        metas.append(_if_readable(settings, place, disk, partial(_take_over, settings, fresh)))
    if any(meta is not None and meta.cluster_id != cluster_id for meta in metas):
        raise NotFormatted("its log directories belong to different clusters")
    opened: list[OpenedDirectory | None] = []
    for place, (disk, meta) in enumerate(zip(disks, metas, strict=True)):
        open_it = partial(LogDirectory, dice=dice)
        directory = _if_readable(settings, place, disk if meta else None, open_it)
        opened.append(OpenedDirectory(meta, directory) if meta and directory else None)
    return opened


def _if_readable(
    settings: BrokerSettings, place: int, disk: Disk | None, read: Callable[[Disk], _T]
) -> _T | None:
    try:
        return None if disk is None else read(disk)
    except OSError as failure:
        if place == home(settings):
            raise
        log.error("the log directory %s is out of use: %s", settings.log_dirs[place], failure)
        return None


def _take_over(settings: BrokerSettings, fresh: MetaProperties, disk: Disk) -> MetaProperties:
    """The identity of a directory; a new, empty directory gets this node's identity first."""
    if is_new(disk):
        write_meta_properties(disk, fresh)
    return _read_meta(disk, settings)


def is_new(disk: Disk) -> bool:
    """Whether a directory has no identity and no partition."""
    found = disk.list("")
    has_identity = META_PROPERTIES in found or META_PROPERTIES_COPY in found
    return not has_identity and not any(partition_of(name) is not None for name in found)


def home(settings: BrokerSettings) -> int:
    """The position of the metadata log's directory in log.dirs."""
    return settings.log_dirs.index(settings.metadata_log_dir)


def _read_meta(disk: Disk, settings: BrokerSettings) -> MetaProperties:
    meta = restored_identity(disk)
    if meta is None:
        raise NotFormatted(
            "meta.properties is missing or unreadable, and so is its copy"
            if not is_new(disk)
            else "meta.properties is missing: `tidelog format` prepares a new directory"
        )
    if meta.node_id != settings.node_id:
        raise NotFormatted(f"it belongs to node {meta.node_id}, not to node {settings.node_id}")
    return meta


def restored_identity(disk: Disk) -> MetaProperties | None:
    """The identity in meta.properties; if the file is damaged, its copy replaces it.

    If both files can be read and differ, the copy is used, because it has a checksum.
    """
    for note in wrong_file_types.clear_identity(disk):
        log.warning("%s", note)
    meta, copy = read_meta_properties(disk), read_meta_copy(disk)
    if copy is None:
        if meta is not None:
            log.warning("meta.properties.copy was missing or damaged and is rewritten")
            write_meta_properties(disk, meta)
        return meta
    if meta != copy:
        log.warning(
            "meta.properties was missing or damaged and is rewritten from meta.properties.copy"
        )
        write_meta_properties(disk, copy)
    return copy


def metadata_log_config(settings: BrokerSettings) -> LogConfig:
    return LogConfig(
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        max_message_bytes=2**31 - 1,
        # Snapshots, not age, decide which segments may be deleted.
        retention_ms=-1,
        retention_bytes=-1,
    )


def quorum_timeouts(settings: BrokerSettings) -> QuorumTimeouts:
    return QuorumTimeouts(
        election_ms=settings.controller_quorum_election_timeout_ms,
        fetch_ms=settings.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=settings.controller_quorum_election_backoff_max_ms,
        request_ms=settings.controller_quorum_request_timeout_ms,
        retry_backoff_ms=settings.controller_quorum_retry_backoff_ms,
    )


def snapshot_limits(settings: BrokerSettings) -> SnapshotLimits:
    return SnapshotLimits(
        settings.metadata_log_max_record_bytes_between_snapshots,
        settings.metadata_log_max_snapshot_interval_ms,
        settings.metadata_max_retention_bytes,
    )


def static_voters(settings: BrokerSettings) -> VoterSet:
    """The voters in controller.quorum.voters; a node without this key reads them from the log."""
    name = settings.controller_listener_names[0] if settings.controller_listener_names else ""
    voters = {
        voter.id: Voter(ReplicaKey(voter.id), ((name, voter.host, voter.port),))
        for voter in settings.controller_quorum_voters
    }
    return VoterSet(voters)


def myself(settings: BrokerSettings, meta: MetaProperties) -> Voter:
    """This node as a voter, with the endpoints that its record should have."""
    return Voter(
        ReplicaKey(settings.node_id, meta.directory_id),
        controller_endpoints(settings),
        KRAFT_VERSIONS.minimum,
        KRAFT_VERSIONS.maximum,
    )


def controller_endpoints(settings: BrokerSettings) -> tuple[tuple[str, str, int], ...]:
    """This controller's endpoints, from controller.quorum.voters or from its listeners."""
    names = settings.controller_listener_names
    for voter in settings.controller_quorum_voters:
        if voter.id == settings.node_id:
            return ((names[0], voter.host, voter.port),)
    known = {one.name: one for one in (*settings.listeners, *settings.advertised_listeners)}
    return tuple(
        (
            name,
            known[name].host if known[name].host not in _ANYWHERE else "localhost",
            known[name].port,
        )
        for name in names
        if settings.is_controller and name in known
    )
