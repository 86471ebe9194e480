"""What a node reads before it starts: whose directories these are, who votes, how long it waits."""

from collections.abc import Sequence

from tidelog.controller.features import KRAFT_VERSIONS
from tidelog.controller.settings import BrokerSettings
from tidelog.log.checkpoints import MetaProperties, read_meta_properties
from tidelog.log.config import LogConfig
from tidelog.model.disk import Disk
from tidelog.node.quorum import SnapshotLimits
from tidelog.replication.quorum.state import QuorumTimeouts, ReplicaKey, Voter, VoterSet

_ANYWHERE = ("", "0.0.0.0", "::")


class NotFormatted(Exception):
    """A log directory does not say whose it is, or says that it is somebody else's."""


def read_metas(disks: Sequence[Disk], settings: BrokerSettings) -> list[MetaProperties]:
    """The meta.properties of every directory, which must agree on cluster and node."""
    metas = [_read_meta(disk, settings) for disk in disks]
    if len({meta.cluster_id for meta in metas}) > 1:
        raise NotFormatted("its log directories belong to different clusters")
    return metas


def _read_meta(disk: Disk, settings: BrokerSettings) -> MetaProperties:
    meta = read_meta_properties(disk)
    if meta is None:
        raise NotFormatted("meta.properties is missing or unreadable")
    if meta.node_id != settings.node_id:
        raise NotFormatted(f"it belongs to node {meta.node_id}, not to node {settings.node_id}")
    return meta


def metadata_log_config(settings: BrokerSettings) -> LogConfig:
    return LogConfig(
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        max_message_bytes=2**31 - 1,
        # Snapshots decide what may go, not age.
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
    """controller.quorum.voters; a node without it learns of the voters from the log."""
    name = settings.controller_listener_names[0] if settings.controller_listener_names else ""
    voters = {
        voter.id: Voter(ReplicaKey(voter.id), ((name, voter.host, voter.port),))
        for voter in settings.controller_quorum_voters
    }
    return VoterSet(voters)


def myself(settings: BrokerSettings, meta: MetaProperties) -> Voter:
    """This node as a voter, as it would have itself known."""
    return Voter(
        ReplicaKey(settings.node_id, meta.directory_id),
        controller_endpoints(settings),
        KRAFT_VERSIONS.minimum,
        KRAFT_VERSIONS.maximum,
    )


def controller_endpoints(settings: BrokerSettings) -> tuple[tuple[str, str, int], ...]:
    """Where others reach this controller: as the voters name it, else as it advertises itself."""
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
