"""Builds the parts of a node's broker, from bottom to top."""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.node.basics import Basics
from tidelog.node.broker import Broker
from tidelog.node.controller.broker_lifecycle import Lifecycle
from tidelog.node.controller.client import ControllerClient
from tidelog.node.controller.directory_reports import DirectoryReports
from tidelog.node.controller.recently_fenced import RecentlyFencedBrokers
from tidelog.node.coordinators.assembly import build_coordinators
from tidelog.node.events.replica_states import ReplicaStates
from tidelog.node.events.replication_events import ReplicationEvents
from tidelog.node.followers.fetchers import Fetchers
from tidelog.node.metadata.current_image import Subscriber
from tidelog.node.partitions.append_checks import AppendChecks
from tidelog.node.partitions.assignments import Assignments
from tidelog.node.partitions.cold_reads import ColdReads
from tidelog.node.partitions.deletions import Deletions
from tidelog.node.partitions.fetches import Fetches
from tidelog.node.partitions.isr_proposals import IsrProposals
from tidelog.node.partitions.log_opening import LogOpening
from tidelog.node.partitions.offset_queries import OffsetQueries
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.queries import Queries
from tidelog.node.partitions.read_replicas import ReadReplicas
from tidelog.node.partitions.replica_host import HostParts, ReplicaHost
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.shares.led_shares import LedShares
from tidelog.node.shares.share_fetches import ShareFetches
from tidelog.node.shares.share_reads import ShareReads
from tidelog.node.shares.share_state_client import ShareStateClient
from tidelog.node.storage.cleaning import LogCleaner
from tidelog.node.storage.housekeeping import Housekeeping
from tidelog.node.storage.replica_moves import ReplicaMoves
from tidelog.node.storage.verification import Verification
from tidelog.node.transactions.assembly import build_transactional_appends
from tidelog.node.transactions.marker_writes import MarkerWrites


def build_broker(
    basics: Basics, controller: ControllerClient, cluster_id: str, events: ReplicationEvents
) -> tuple[Broker, Sequence[Subscriber]]:
    """Build a broker; returns it with the parts that must be notified of new images, in order."""
    leading = _leading_parts(basics, controller, cluster_id, events)
    host = ReplicaHost(
        basics.clock, basics.jobs, basics.storage, basics.current, events, leading.host
    )
    broker = _broker(basics, leading, host, events)
    return broker, (
        leading.throttles.image_changed,
        broker.image_changed,
        broker.coordinators.image_changed,
        broker.share_fetches.shares.image_changed,
        broker.settle_deletions,
        broker.lifecycle.image_changed,
        leading.recently_fenced.image_changed,
        leading.host.isr_proposals.image_changed,
    )


class _LeadingParts(NamedTuple):
    """The parts that lead and follow partitions."""

    throttles: Throttles
    recently_fenced: RecentlyFencedBrokers
    host: HostParts


def _leading_parts(
    basics: Basics, controller: ControllerClient, cluster_id: str, events: ReplicationEvents
) -> _LeadingParts:
    settings, clock = basics.settings, basics.clock
    current, failed = basics.current, basics.failed_directories
    throttles = Throttles(settings.node_id, clock)
    partitions = Partitions(
        clock,
        current,
        failed.partition_failed,
        events.counters,
        ReadReplicas(settings.replica_selector_class, settings.broker_rack),
        throttles,
        AppendChecks(basics.jobs, basics.ports.hold),
    )
    coordinators = build_coordinators(basics, controller, partitions)
    lifecycle = _lifecycle(basics, controller, cluster_id)
    recently_fenced = RecentlyFencedBrokers(clock, current)
    fetchers = Fetchers(
        settings,
        clock,
        basics.peers,
        current,
        lambda: lifecycle.epoch_in(current.image),
        failed.partition_failed,
        throttles,
        recently_fenced,
    )
    return _LeadingParts(
        throttles,
        recently_fenced,
        HostParts(
            partitions,
            fetchers,
            coordinators,
            lifecycle,
            _isr_proposals(basics, controller, events),
            _directory_reports(basics, controller, lifecycle),
            failed,
        ),
    )


def _lifecycle(basics: Basics, controller: ControllerClient, cluster_id: str) -> Lifecycle:
    return Lifecycle(
        basics.settings,
        basics.dice,
        basics.clock,
        controller.submit,
        cluster_id,
        basics.storage,
        basics.ports.stop,
    )


def _isr_proposals(
    basics: Basics, controller: ControllerClient, events: ReplicationEvents
) -> IsrProposals:
    settings = basics.settings
    most = settings.socket_request_max_bytes
    return IsrProposals(settings.node_id, controller.submit, events.record, events.counters, most)


def _directory_reports(
    basics: Basics, controller: ControllerClient, lifecycle: Lifecycle
) -> DirectoryReports:
    settings = basics.settings
    return DirectoryReports(
        settings.node_id,
        basics.clock,
        controller.submit,
        lambda: lifecycle.epoch,
        settings.socket_request_max_bytes,
    )


def _share_fetches(basics: Basics, fetches: Fetches, offset_queries: OffsetQueries) -> ShareFetches:
    settings, clock = basics.settings, basics.clock
    client = ShareStateClient(
        settings.inter_broker_listener_name, clock, basics.peers, basics.current
    )
    shares = LedShares(settings, clock, fetches.partitions, offset_queries, client)
    reads = ShareReads(fetches, basics.failed_directories.partition_failed)
    return ShareFetches(clock, fetches.partitions, reads, shares)


def _replica_moves(basics: Basics, parts: HostParts) -> ReplicaMoves:
    return ReplicaMoves(
        basics.clock,
        basics.storage,
        parts.partitions,
        basics.jobs,
        basics.settings.log_dirs,
        parts.directory_reports.report,
        basics.failed_directories.directory_failed,
    )


def _broker(
    basics: Basics, leading: _LeadingParts, host: ReplicaHost, events: ReplicationEvents
) -> Broker:
    """Build the parts that depend on replicas: assignments, background work and queries."""
    settings, clock = basics.settings, basics.clock
    storage, jobs, failed = basics.storage, basics.jobs, basics.failed_directories
    parts = leading.host
    partitions, lifecycle = parts.partitions, parts.lifecycle
    assignments = Assignments(
        settings,
        clock,
        LogOpening(jobs, storage),
        storage,
        partitions,
        parts.fetchers,
        host,
    )
    failed.subscribe(assignments.take_offline, lifecycle.directory_failed)
    verification = Verification(clock, jobs, partitions, failed.partition_failed)
    housekeeping = Housekeeping(
        settings,
        clock,
        storage,
        partitions,
        failed.partition_failed,
        lifecycle,
        assignments.damage_found,
        verification.add,
    )
    moves = _replica_moves(basics, parts)
    cold_reads = ColdReads(jobs)
    fetches = Fetches(partitions, clock, events.counters, cold_reads)
    offset_queries = OffsetQueries(partitions, failed.partition_failed, jobs, cold_reads)
    return Broker(
        basics.current,
        storage,
        partitions,
        fetches,
        parts.coordinators,
        build_transactional_appends(basics, partitions),
        MarkerWrites(clock, partitions, parts.coordinators),
        lifecycle,
        leading.recently_fenced,
        assignments,
        housekeeping,
        LogCleaner(
            settings, clock, jobs, storage, partitions, basics.current, failed.partition_failed
        ),
        Queries(partitions, storage, settings.log_dirs, moves, cold_reads),
        offset_queries,
        Deletions(clock, partitions, failed.partition_failed),
        ReplicaStates(settings, clock, partitions, events.record),
        _share_fetches(basics, fetches, offset_queries),
    )
