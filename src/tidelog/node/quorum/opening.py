"""Builds a node's part in the metadata quorum from its settings and its disk."""

import logging
from collections.abc import Callable
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.log.checkpoints.checkpoints import MetaProperties
from tidelog.log.partition import PartitionLog
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.metadata_log import MetadataLog
from tidelog.node.metadata.metadata_opening import OpenedMetadata
from tidelog.node.metadata.snapshot_taking import SnapshotTaking
from tidelog.node.peers import Peers
from tidelog.node.quorum.listener import QuorumListener
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.storage.opening import myself, quorum_timeouts, snapshot_limits, static_voters
from tidelog.node.timers import Timers
from tidelog.replication.quorum.events import QuorumEvent
from tidelog.replication.quorum.machine import QuorumMachine


class QuorumSurroundings(NamedTuple):
    """What a node has for all of its parts."""

    clock: Clock
    timers: Timers
    peers: Peers
    dice: Dice
    jobs: Jobs
    fail: Callable[[str], None]
    """End the node for this reason."""


logger = logging.getLogger(__name__)


def open_quorum(
    settings: BrokerSettings,
    meta: MetaProperties,
    disk: Disk,
    opened: OpenedMetadata,
    log: PartitionLog,
    around: QuorumSurroundings,
    start_flush: Callable[[], None],
    listener: QuorumListener,
) -> Quorum:
    """Ready to start; nothing has been sent or written yet."""
    timeouts, me = quorum_timeouts(settings), myself(settings, meta)
    configured = static_voters(settings)
    for note in (*log.recovery.notes, *mended(log)):
        logger.warning("%s", note)
    metadata_log = MetadataLog(log, start_flush, opened.snapshots, configured, opened.mark)
    metadata_log.restore(opened.content, around.clock.now)
    machine = QuorumMachine(
        me.key,
        configured,
        opened.promises,
        metadata_log.synced_end,
        timeouts,
        around.dice,
        has_bootstrap_servers=bool(settings.controller_quorum_bootstrap_servers),
        held=opened.mark.held,
    )

    def step(event: QuorumEvent) -> None:
        quorum.step(event)

    network = QuorumNetwork(
        around.peers,
        me.key.id,
        lambda: machine.voters,
        settings.controller_quorum_bootstrap_servers,
        me.endpoints,
        meta.cluster_id,
        timeouts.request_ms,
        step,
    )
    quorum = Quorum(
        machine,
        metadata_log,
        disk,
        around.clock,
        around.timers,
        timeouts,
        network,
        listener,
        meta.cluster_id,
        SnapshotTaking(
            metadata_log, snapshot_limits(settings), around.clock, around.jobs, around.fail
        ),
        None if opened.content is None else opened.content.image,
    )
    return quorum


def mended(log: PartitionLog) -> list[str]:
    """Rebuild what is missing of its indexes: nobody does that later. -> what was wrong."""
    while not log.mend():
        pass
    return log.take_notes()
