"""Builds the parts of a node, from bottom to top.

A part takes the parts below it as arguments. The controller client and the active controller need
each other, and so do the log directories and the handler of their failures. For each of these
pairs, `build_node` sets an attribute of the lower part once the upper part exists. In all other
cases, a lower part calls upper parts that have subscribed to it: to the image, to failed
directories or to fsyncs of the metadata log. While a node is assembled, nothing is sent and no
timer is set.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.partition import PartitionLog
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.ids import Millis
from tidelog.node.basics import Basics, NodePorts
from tidelog.node.broker import Broker
from tidelog.node.broker_assembly import build_broker
from tidelog.node.clock import Clock
from tidelog.node.controller.active_controller import ActiveController
from tidelog.node.controller.client import ControllerClient
from tidelog.node.controller.registration import ControllerRegistration
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.jobs import Jobs
from tidelog.node.login import peers_security
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.metadata.metadata_log import MetadataLog, UnusableMetadata
from tidelog.node.metadata.metadata_opening import open_metadata, open_metadata_log
from tidelog.node.metadata.snapshot_schedule import SnapshotTaking
from tidelog.node.metadata.stored_metadata import StoredMetadata
from tidelog.node.peers import Peers
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.quorum.voter_changes import Myself, VoterChanges
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.authentication import Authentication
from tidelog.node.requests.authorizing import Authorizing
from tidelog.node.requests.connection_limiting import ConnectionLimiting
from tidelog.node.requests.context import RequestContext
from tidelog.node.requests.executors import executors
from tidelog.node.requests.requests import Requests
from tidelog.node.requests.slices import Slices
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.opening import (
    OpenedDirectory,
    home,
    myself,
    open_directories,
    quorum_timeouts,
    snapshot_limits,
    static_voters,
)
from tidelog.node.storage.storage import Storage
from tidelog.replication.quorum.machine import QuorumMachine


@dataclass(frozen=True, slots=True)
class NodeParts:
    basics: Basics
    metadata_log: PartitionLog
    quorum: Quorum
    voter_changes: VoterChanges
    context: RequestContext
    events: ReplicationEvents
    active_controller: ActiveController
    broker: Broker
    slices: Slices
    requests: Requests
    authentication: Authentication


def build_node(
    settings: BrokerSettings,
    disks: Sequence[Disk | None],
    dice: Dice,
    now: Millis,
    ports: NodePorts,
) -> NodeParts:
    """Build all parts of a node.

    `disks` has one entry per directory of log.dirs, in the same order. An entry is None if its
    directory cannot be used.
    """
    directories = open_directories(disks, settings, dice)
    place = home(settings)
    disk, own = disks[place], directories[place]
    assert disk is not None
    assert own is not None
    basics = _basics(settings, directories, dice, now, ports)
    clock, peers, current = basics.clock, basics.peers, basics.current

    metadata_log, quorum = _quorum(basics, disk, own)
    context = RequestContext(settings, clock, dice, quorum, current)
    controller = ControllerClient(quorum, peers, clock, basics.ready, settings.request_timeout_ms)
    voter_changes = _voter_changes(basics, own.meta, quorum, controller)
    events = ReplicationEvents(settings, clock, peers, current, controller.submit)
    active_controller = ActiveController(
        quorum, voter_changes, settings, dice, clock, peers, events
    )
    controller.active_controller = active_controller
    registration = ControllerRegistration(settings, dice.uuid(), controller.submit)
    broker, subscribers = build_broker(basics, controller, own.meta.cluster_id, events)
    current.subscribe(
        Authorizing(settings, context).image_changed,
        ConnectionLimiting(settings, ports.emit).image_changed,
        registration.image_changed,
        *(subscribers if settings.is_broker else ()),
    )
    slices = Slices(clock, basics.ready)
    authentication = Authentication(settings, clock, dice, current)
    requests = Requests(
        context,
        executors(broker, quorum, basics.jobs, slices, authentication, controller.change_metadata),
        events.counters,
        slices,
        basics.ready,
    )
    return NodeParts(
        basics,
        metadata_log,
        quorum,
        voter_changes,
        context,
        events,
        active_controller,
        broker,
        slices,
        requests,
        authentication,
    )


def _basics(
    settings: BrokerSettings,
    directories: Sequence[OpenedDirectory | None],
    dice: Dice,
    now: Millis,
    ports: NodePorts,
) -> Basics:
    clock, ready = Clock(now), ReadyQueue(OSError, UnusableMetadata)
    jobs = Jobs(ports.emit, clock)
    peers = Peers(clock, ready, ports.emit, peers_security(settings, dice))
    storage = Storage(directories)
    failed = FailedDirectories(clock, storage, settings.log_dirs, home(settings), ports.stop)
    storage.on_failure = failed.directory_failed
    return Basics(
        settings,
        dice,
        clock,
        ready,
        jobs,
        peers,
        storage,
        failed,
        CurrentImage(),
        ports,
    )


# -- the metadata quorum ---------------------------------------------------------------------------


def _quorum(basics: Basics, disk: Disk, own: OpenedDirectory) -> tuple[PartitionLog, Quorum]:
    """Open the metadata log and build this node's quorum member."""
    settings, clock, jobs, stop = basics.settings, basics.clock, basics.jobs, basics.ports.stop
    meta = own.meta
    timeouts, me = quorum_timeouts(settings), myself(settings, meta)
    configured = static_voters(settings)
    opened = open_metadata(settings, meta, disk, own.log_directory, basics.dice, basics.storage)
    log = open_metadata_log(settings, own.log_directory, clock.now)
    metadata_log = MetadataLog(log, clock, jobs, stop, opened.snapshots, configured, opened.mark)
    metadata_log.restore(opened.content, clock.now)
    machine = QuorumMachine(
        me.key,
        configured,
        opened.promises,
        metadata_log.synced_end,
        timeouts,
        basics.dice,
        has_bootstrap_servers=bool(settings.controller_quorum_bootstrap_servers),
        held=opened.mark.held,
    )
    network = QuorumNetwork(
        basics.peers,
        machine,
        settings.controller_quorum_bootstrap_servers,
        me.endpoints,
        meta.cluster_id,
        timeouts,
    )
    stored = StoredMetadata(
        disk,
        metadata_log,
        SnapshotTaking(metadata_log, snapshot_limits(settings), clock, jobs, stop),
        opened.content.image if opened.content else ClusterImage(cluster_id=meta.cluster_id),
    )
    quorum = Quorum(
        machine,
        stored,
        clock,
        basics.ready,
        network,
        basics.current,
        basics.ports.quorum_listener,
    )
    return log, quorum


def _voter_changes(
    basics: Basics, meta: MetaProperties, quorum: Quorum, controller: ControllerClient
) -> VoterChanges:
    settings = basics.settings
    return VoterChanges(
        quorum,
        Myself(myself(settings, meta), settings.controller_listener_names[0], meta.cluster_id),
        basics.peers,
        basics.clock,
        quorum_timeouts(settings),
        controller.submit,
    )
