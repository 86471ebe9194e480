"""Builds the parts of a node, from bottom to top.

A part takes the parts below it as arguments. The controller client and the active controller need
each other. The log directories and the handler of their failures also need each other. `build_node`
first creates both parts of such a pair, and then sets an attribute of one part to the other part.
The broker is created before its parts and connects them. Nothing is sent while a node is assembled,
and no timer is set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.partition import PartitionLog
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound
from tidelog.node.broker import Broker
from tidelog.node.clock import Clock
from tidelog.node.controller.active_controller import ActiveController
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.controller.client import ControllerClient
from tidelog.node.controller.directory_reports import DirectoryReports
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.controller.registration import ControllerRegistration
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.events.replica_states import ReplicaStates
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.metadata_log import MetadataLog, UnusableMetadata
from tidelog.node.metadata.metadata_opening import open_metadata, open_metadata_log
from tidelog.node.metadata.snapshot_schedule import SnapshotTaking
from tidelog.node.partitions.append_checks import AppendChecks, Hold
from tidelog.node.partitions.assignments import Assignments
from tidelog.node.partitions.deletions import Deletions
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.queries import Queries
from tidelog.node.partitions.read_replicas import ReadReplicas
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Peers
from tidelog.node.quorum.listener import QuorumListener
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.quorum.voter_changes import Myself, VoterChanges
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.context import RequestContext
from tidelog.node.requests.executors import executors
from tidelog.node.requests.requests import Requests
from tidelog.node.requests.slices import Slices
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.housekeeping import Housekeeping
from tidelog.node.storage.opening import (
    OpenedDirectory,
    home,
    myself,
    open_directories,
    quorum_timeouts,
    snapshot_limits,
    static_voters,
)
from tidelog.node.storage.replica_moves import ReplicaMoves
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.verification import Verification
from tidelog.node.timers import Timers
from tidelog.replication.quorum.machine import QuorumMachine


class NodePorts(NamedTuple):
    """The node's own callbacks, which its parts call."""

    emit: Callable[[Outbound], None]
    stop: Callable[[str], None]
    """Stops the node for the given reason."""
    hold: Hold
    quorum_listener: QuorumListener


class Basics(NamedTuple):
    """The objects that almost every part of a node uses."""

    settings: BrokerSettings
    dice: Dice
    clock: Clock
    timers: Timers
    ready: ReadyQueue
    jobs: Jobs
    peers: Peers
    storage: Storage
    ports: NodePorts


@dataclass(frozen=True, slots=True)
class NodeParts:
    basics: Basics
    metadata_log: PartitionLog
    quorum: Quorum
    voter_changes: VoterChanges
    context: RequestContext
    events: ReplicationEvents
    active_controller: ActiveController
    controller: ControllerClient
    registration: ControllerRegistration
    broker: Broker
    slices: Slices
    requests: Requests


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
    clock, timers, ready = Clock(now), Timers(), ReadyQueue(OSError, UnusableMetadata)
    jobs, peers = Jobs(ports.emit, clock, timers), Peers(clock, timers, ready, ports.emit)
    storage = Storage(directories)
    basics = Basics(settings, dice, clock, timers, ready, jobs, peers, storage, ports)

    metadata_log, quorum = _quorum(basics, disk, own)
    context = RequestContext(settings, clock, dice, quorum)
    controller = ControllerClient(quorum, peers, clock, timers, ready, settings.request_timeout_ms)
    voter_changes = _voter_changes(basics, own.meta, quorum, controller)
    events = ReplicationEvents(
        settings, clock, timers, peers, lambda: context.image, controller.submit
    )
    active_controller = ActiveController(
        quorum, voter_changes, settings, dice, clock, timers, peers, events
    )
    controller.active_controller = active_controller
    registration = ControllerRegistration(settings, dice.uuid(), controller.submit)
    broker = build_broker(basics, controller, own.meta.cluster_id, events)
    storage.on_failure = broker.failed_directories.directory_failed
    slices = Slices(clock, timers, ready)
    change_metadata = controller.change_metadata
    requests = Requests(
        context,
        executors(broker, quorum, jobs, slices, change_metadata),
        events.counters,
        slices,
        ready,
    )
    return NodeParts(
        basics,
        metadata_log,
        quorum,
        voter_changes,
        context,
        events,
        active_controller,
        controller,
        registration,
        broker,
        slices,
        requests,
    )


# -- the metadata quorum ---------------------------------------------------------------------------


def _quorum(basics: Basics, disk: Disk, own: OpenedDirectory) -> tuple[PartitionLog, Quorum]:
    """Open the metadata log and build this node's quorum member."""
    settings, dice, clock, timers, ready, jobs, peers, storage, ports = basics
    meta = own.meta
    timeouts, me = quorum_timeouts(settings), myself(settings, meta)
    configured = static_voters(settings)
    opened = open_metadata(settings, meta, disk, own.log_directory, dice, storage)
    log = open_metadata_log(settings, own.log_directory, clock.now)

    def start_flush() -> None:
        files, up_to = log.begin_flush(clock.now)
        jobs.sync(files, lambda: quorum.flushed(up_to), ports.stop)

    metadata_log = MetadataLog(log, start_flush, opened.snapshots, configured, opened.mark)
    metadata_log.restore(opened.content, clock.now)
    machine = QuorumMachine(
        me.key,
        configured,
        opened.promises,
        metadata_log.synced_end,
        timeouts,
        dice,
        has_bootstrap_servers=bool(settings.controller_quorum_bootstrap_servers),
        held=opened.mark.held,
    )
    network = QuorumNetwork(
        peers,
        me.key.id,
        lambda: machine.voters,
        settings.controller_quorum_bootstrap_servers,
        me.endpoints,
        meta.cluster_id,
        timeouts.request_ms,
        lambda event: quorum.step(event),
    )
    quorum = Quorum(
        machine,
        metadata_log,
        disk,
        clock,
        timers,
        timeouts,
        network,
        ports.quorum_listener,
        meta.cluster_id,
        ready,
        SnapshotTaking(metadata_log, snapshot_limits(settings), clock, jobs, ports.stop),
        None if opened.content is None else opened.content.image,
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
        basics.timers,
        quorum_timeouts(settings),
        controller.submit,
    )


# -- the broker ------------------------------------------------------------------------------------


def build_broker(
    basics: Basics, controller: ControllerClient, cluster_id: str, events: ReplicationEvents
) -> Broker:
    settings, dice, clock, timers, ready, jobs, _, storage, ports = basics
    broker = Broker(clock, storage, jobs, events)
    broker.throttles = Throttles(settings.node_id, clock)
    broker.partitions = Partitions(
        clock,
        timers,
        broker.storage_failed,
        events.counters,
        ReadReplicas(settings.replica_selector_class, settings.broker_rack),
        broker.throttles,
        AppendChecks(jobs, ports.hold),
    )
    broker.coordinators = Coordinators(
        settings, dice, clock, timers, ready, broker.partitions, broker.offsets_partitions, jobs
    )
    broker.lifecycle = Lifecycle(
        settings, dice, clock, timers, controller.submit, cluster_id, storage, ports.stop
    )
    _add_replication(basics, broker, controller, events)
    broker.failed_directories = FailedDirectories(
        clock,
        timers,
        storage,
        settings.log_dirs,
        home(settings),
        take_offline=broker.assignments.take_offline,
        report=broker.lifecycle.directory_failed,
        stop=ports.stop,
    )
    _add_background_work(basics, broker)
    _add_queries(basics, broker)
    broker.replica_states = ReplicaStates(settings, clock, timers, broker.partitions, events.record)
    return broker


def _add_replication(
    basics: Basics, broker: Broker, controller: ControllerClient, events: ReplicationEvents
) -> None:
    """Add the parts that lead and follow partitions as the image assigns them."""
    settings, _, clock, timers, _, _, peers, storage, _ = basics
    broker.isr_proposals = IsrProposals(
        settings.node_id,
        controller.submit,
        events.record,
        events.counters,
        settings.socket_request_max_bytes,
    )
    broker.recently_fenced = RecentlyFencedBrokers(clock, timers, lambda: broker.image)
    broker.fetchers = Fetchers(
        settings,
        clock,
        timers,
        peers,
        lambda: broker.image,
        lambda: broker.lifecycle.epoch_in(broker.image),
        broker.storage_failed,
        broker.throttles,
        broker.recently_fenced,
    )
    broker.directory_reports = DirectoryReports(
        settings.node_id,
        clock,
        timers,
        controller.submit,
        lambda: broker.lifecycle.epoch,
        settings.socket_request_max_bytes,
    )
    broker.assignments = Assignments(
        settings,
        clock,
        timers,
        storage,
        broker.partitions,
        broker.fetchers,
        broker,
        led=broker.led,
        resigned=broker.resigned,
        deleted=broker.coordinators.partitions_deleted,
        caught_up=broker.caught_up,
        damaged=broker.lifecycle.reregister_as_unclean,
        located=broker.directory_reports.report,
        storage_failed=broker.storage_failed,
    )


def _add_background_work(basics: Basics, broker: Broker) -> None:
    """Add retention, checkpoints and the verification of logs."""
    settings, _, clock, timers, _, jobs, _, storage, _ = basics
    verification = Verification(clock, timers, jobs, broker.partitions, broker.storage_failed)
    broker.housekeeping = Housekeeping(
        settings,
        clock,
        timers,
        storage,
        broker.partitions,
        broker.storage_failed,
        broker.lifecycle,
        broker.assignments.damage_found,
        verification.add,
    )


def _add_queries(basics: Basics, broker: Broker) -> None:
    """Add the parts that answer requests about logs and directories."""
    settings, _, clock, timers, _, jobs, _, storage, _ = basics
    moves = ReplicaMoves(
        clock,
        timers,
        storage,
        broker.partitions,
        jobs,
        settings.log_dirs,
        broker.directory_reports.report,
        broker.failed_directories.directory_failed,
    )
    broker.queries = Queries(broker.partitions, storage, settings.log_dirs, moves)
    broker.offset_queries = OffsetQueries(broker.partitions, broker.storage_failed, jobs)
    broker.deletions = Deletions(clock, timers, broker.partitions, broker.storage_failed)
