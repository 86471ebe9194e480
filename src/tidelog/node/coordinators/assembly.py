"""Builds the coordinators of a broker. A new kind of coordinator is added to `_kinds`."""

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from tidelog.config.group_settings import GroupSettings, ShareGroupSettings
from tidelog.config.settings import BrokerSettings
from tidelog.coordination.groups.machine import GroupMachine, refuse_group_request
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.share_state.share_coordinator import (
    SnapshotSettings,
    refuse_state_request,
)
from tidelog.node.basics import Basics
from tidelog.node.controller.client import ControllerClient
from tidelog.node.coordinators.consumer_group_settings import consumer_group_settings
from tidelog.node.coordinators.coordinators import Coordinators
from tidelog.node.coordinators.outgoing import OutgoingRequests
from tidelog.node.coordinators.shards import CoordinatorKind, CoordinatorShards, ShardHost
from tidelog.node.coordinators.share_coordinators import ShareCoordinators
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.authorizing import authorizer_settings
from tidelog.node.transactions.assembly import transaction_coordinators


def build_coordinators(
    basics: Basics, controller: ControllerClient, partitions: Partitions
) -> Coordinators:
    outgoing = OutgoingRequests(
        basics.settings, basics.peers, basics.ready, basics.current, controller.submit
    )
    host = ShardHost(basics.clock, basics.ready, partitions, basics.current, basics.jobs, outgoing)
    return Coordinators(CoordinatorShards(kind, host) for kind in _kinds(basics))


def _kinds(basics: Basics) -> list[CoordinatorKind]:
    return [_groups(basics), transaction_coordinators(basics.settings), _shares(basics)]


def _groups(basics: Basics) -> CoordinatorKind:
    settings = _group_settings(basics.settings)
    authorizer = authorizer_settings(basics.settings)

    def new_machine(replica: Replica) -> GroupMachine:
        log = replica.log
        return GroupMachine(
            GroupShardState(settings, basics.dice, lambda: log.config.largest_batch, authorizer)
        )

    return CoordinatorKind(
        CONSUMER_OFFSETS, new_machine, refuse_group_request, settings.offsets_commit_timeout_ms
    )


def _shares(basics: Basics) -> CoordinatorKind:
    settings = basics.settings
    snapshots = SnapshotSettings(
        settings.share_coordinator_snapshot_update_records_per_snapshot,
        settings.share_coordinator_cold_partition_snapshot_interval_ms,
        settings.share_coordinator_state_topic_prune_interval_ms,
    )
    failed = basics.failed_directories.partition_failed
    return CoordinatorKind(
        SHARE_GROUP_STATE,
        ShareCoordinators(snapshots, basics.clock, failed).new_machine,
        refuse_state_request,
        settings.share_coordinator_write_timeout_ms,
    )


def _share_settings(settings: BrokerSettings) -> ShareGroupSettings:
    return ShareGroupSettings(
        session_timeout_ms=settings.group_share_session_timeout_ms,
        heartbeat_interval_ms=settings.group_share_heartbeat_interval_ms,
        assignment_interval_ms=settings.group_share_assignment_interval_ms,
        max_size=settings.group_share_max_size,
        limits={
            "share.assignment.interval.ms": (
                settings.group_share_min_assignment_interval_ms,
                settings.group_share_max_assignment_interval_ms,
            ),
            "share.session.timeout.ms": (
                settings.group_share_min_session_timeout_ms,
                settings.group_share_max_session_timeout_ms,
            ),
            "share.heartbeat.interval.ms": (
                settings.group_share_min_heartbeat_interval_ms,
                settings.group_share_max_heartbeat_interval_ms,
            ),
        },
    )


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
        offsets_commit_timeout_ms=settings.offsets_commit_timeout_ms,
        consumer=consumer_group_settings(settings),
        share=_share_settings(settings),
    )
