"""Compares a node's state before and after every event, and passes the changes to the invariants.

The checker reads a node's state through `node.inspection`. The checker runs after every event and
must therefore be cheap. An unchanged replica costs a few comparisons, and the checker reads only
new batches.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tidelog.controller.image.image import RECOVERING, ClusterImage
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_EPOCH,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
)
from tidelog.node.inspection import (
    NodeInspection,
    follower_progress,
    log_end_offsets,
    maximal_isr,
    proposed_isr,
)
from tidelog.node.node import Node
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.leader import PartitionLeader
from tidelog.replication.quorum.roles import Follower, Leader, Role
from tidelog.sim.checks.scene import Copy, Scene, Stance, Violation
from tidelog.sim.checks.shadow import Batch, ShadowLog, read_batches
from tidelog.sim.clients.history import ClientWrite
from tidelog.sim.invariants import ALL, Invariant
from tidelog.sim.machines.host import SimHost

METADATA = TopicPartition(METADATA_TOPIC, 0)


class CheckObserver(Protocol):
    """Receives every change of a replica or of the cluster image, for example to record it."""

    def copy_changed(self, copy: Copy, what: str) -> None: ...

    def image_changed(self) -> None:
        """Called when a node has applied newer metadata than any node had before."""


class _Seen:
    """The state of a node after its previous event."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inspection = NodeInspection(node)
        self.image: ClusterImage | None = None
        self.replicas: dict[Replica, Copy] = {}
        self.metadata: Copy | None = None
        self.role: Role | None = None
        self.is_content = False


class Checker:
    """Detects the changes of all nodes, and calls the invariants that check each change."""

    def __init__(
        self,
        scene: Scene,
        checks: Counter[str],
        observer: CheckObserver | None = None,
        invariants: Sequence[type[Invariant]] = ALL,
    ) -> None:
        self.scene = scene
        self._checks = checks
        self._observer = observer
        self._seen: dict[NodeId, _Seen] = {}
        made = [invariant(scene) for invariant in invariants]
        self._appended = _listeners(made, "appended")
        self._cut = _listeners(made, "cut")
        self._led = _listeners(made, "led")
        self._moved = _listeners(made, "watermark_moved")
        self._counted = _listeners(made, "followers_counted")
        self._shrinking = _listeners(made, "shrinking")
        self._stance_changed = _listeners(made, "stance_changed")
        self._image_changed = _listeners(made, "image_changed")
        self._acknowledged = _listeners(made, "acknowledged")
        self._read = _listeners(made, "read")

    # -- answers to clients ------------------------------------------------------------------------

    def acknowledged(self, write: ClientWrite) -> None:
        self._tell(self._acknowledged, write)

    def read(self, partition: TopicPartition, batches: Sequence[Batch]) -> None:
        self._tell(self._read, partition, batches)

    # -- after every event -------------------------------------------------------------------------

    def look(self, host: SimHost) -> None:
        """Find the changes that the last event made on this machine, and report them."""
        node = host.node
        if node is None:
            self._gone(host)
            return
        seen = self._seen.get(host.id)
        if seen is None or seen.node is not node:
            seen = self._seen[host.id] = _Seen(node)
            self._leave(host.id)
            self.scene.copies[host.id] = {}
        inspection = seen.inspection
        self.scene.broker_epochs[host.id] = inspection.broker_epoch
        image = node.image
        if image is not seen.image:
            seen.image = image
            self._see_image(host.id, image)
        self._see_metadata(host, seen)
        replicas = inspection.replicas
        known = seen.replicas
        for replica in replicas:
            copy = known.get(replica)
            if copy is None:
                copy = self._opened(host, seen, replica)
            log = replica.log
            leader = replica.leader
            if leader is None:
                epoch, watermark = NO_EPOCH, replica.high_watermark
            else:
                epoch, watermark = leader.epoch, leader.high_watermark
                copy.maximal_isr = maximal_isr(leader)
            if (
                log.log_end_offset != copy.end
                or watermark != copy.high_watermark
                or epoch != copy.epoch
                or log.log_start_offset != copy.start
            ):
                self._see(copy, log, watermark, epoch)
            if leader is not None and (
                log_end_offsets(leader) != copy.ends
                or leader is not copy.leader
                or proposed_isr(leader) is not copy.proposed
            ):
                self._see_followers(host, copy, leader)
        if len(known) > len(replicas):
            self._drop_closed(host.id, seen, set(replicas))

    def _see_followers(self, host: SimHost, copy: Copy, leader: PartitionLeader) -> None:
        """Report what a leader knows of its followers' progress, and the ISR that it proposes."""
        if leader is not copy.leader:
            copy.leader, copy.ends, copy.proposed = leader, {}, None
            copy.level_at = dict.fromkeys(leader.isr, host.clock.now)
        before, ends = copy.ends, log_end_offsets(leader)
        if ends != before:
            copy.ends = dict(ends)
            followers = follower_progress(leader)
            copy.runs = {one: p.broker_epoch for one, p in followers.items()}
            for follower, progress in followers.items():
                # Whether the follower's last fetch had reached the log end before this event.
                was_level = before.get(follower) == progress.end >= before.get(copy.node, 0)
                if was_level or progress.end >= leader.end:
                    copy.level_at[follower] = progress.last_fetch
            self._tell(self._counted, copy)
        proposed = proposed_isr(leader)
        if proposed is not copy.proposed:
            copy.proposed = proposed
            if copy.proposed is not None and copy.proposed < leader.isr:
                left = leader.isr - copy.proposed
                since = host.clock.now - host.settings.replica_lag_time_max_ms
                self._tell(self._shrinking, copy, left, since)

    def _see_image(self, node: NodeId, image: ClusterImage) -> None:
        if image.offset > self.scene.image.offset:
            self.scene.image = image
            for topic in image.topics.values():
                for index, placed in topic.partitions.items():
                    if placed.leader_recovery_state == RECOVERING:
                        name = TopicPartition(topic.name, index)
                        ledger = self.scene.ledger(name, topic.topic_id)
                        ledger.unclean_epochs.add(placed.leader_epoch)
            if self._observer is not None:
                self._observer.image_changed()
        self._tell(self._image_changed, node, image)

    def _see_metadata(self, host: SimHost, seen: _Seen) -> None:
        inspection = seen.inspection
        log = inspection.metadata_log
        copy = seen.metadata
        if copy is None:
            ledger = self.scene.ledger(METADATA, METADATA_TOPIC_ID, is_metadata=True)
            copy = seen.metadata = Copy(host.id, host.runs, ledger, ShadowLog())
            self.scene.copies[host.id][METADATA] = copy
        role = inspection.quorum_role
        kind = type(role)
        is_content = kind is Leader or (
            isinstance(role, Follower) and role.has_fetched and not role.leader_is_gone
        )
        if role is not seen.role or is_content is not seen.is_content:
            seen.role, seen.is_content = role, is_content
            stance = Stance(host.id, host.runs, role.epoch, kind, is_content, inspection.voters)
            self._tell(self._stance_changed, stance, host.world.now)
        epoch = role.epoch if kind is Leader else NO_EPOCH
        watermark = inspection.metadata_high_watermark
        if (
            log.log_end_offset != copy.end
            or watermark != copy.high_watermark
            or epoch != copy.epoch
            or log.log_start_offset != copy.start
        ):
            self._see(copy, log, watermark, epoch)

    def _opened(self, host: SimHost, seen: _Seen, replica: Replica) -> Copy:
        ledger = self.scene.ledger(replica.partition, replica.topic_id)
        copy = Copy(host.id, host.runs, ledger, ShadowLog())
        copy.high_watermark = replica.high_watermark
        copy.opened_end = replica.log.log_end_offset
        seen.replicas[replica] = copy
        self.scene.copies[host.id][replica.partition] = copy
        return copy

    def _see(self, copy: Copy, log: PartitionLog, watermark: Offset, epoch: LeaderEpoch) -> None:
        """Report changes in this order: log content, leadership, high watermark."""
        start, end, before = log.log_start_offset, log.log_end_offset, copy.end
        copy.start, copy.end = start, end
        if start > before or end < before:
            if start > before:
                copy.log.clear()
            copy.log.cut(end)
            if copy.rotten_at is not None and not start <= copy.rotten_at < end:
                copy.rotten_at = None
            self._tell(self._cut, copy, before)
            self._say(copy, f"node {copy.node} cuts from {before} to {end}")
        if end > copy.log.end:
            found = read_batches(log, copy.log.end)
            if not copy.log.batches and copy.node in self.scene.damaged:
                found = self._before_damage(copy, found, end)
            if found:
                copy.log.extend(found)
                self._tell(self._appended, copy, found)
                self._say(copy, f"node {copy.node} has up to {end}")
        if epoch != copy.epoch:
            copy.epoch = epoch
            if epoch != NO_EPOCH:
                self._tell(self._led, copy)
                self._say(copy, f"node {copy.node} leads in epoch {epoch}")
        if watermark != copy.high_watermark:
            was, copy.high_watermark = copy.high_watermark, watermark
            self._tell(self._moved, copy, was)
            self._say(copy, f"node {copy.node} commits to {watermark}")

    def _before_damage(self, copy: Copy, found: list[Batch], end: Offset) -> list[Batch]:
        """Replace damaged batches with the batches that the log held when the node last ran.

        `found` has the batches that were read from the files. The batches before the first damaged
        one are returned unchanged. All later batches come from the log of the last run, even if a
        damaged header ended the read early. Batches that the node fetched after its start never
        count as damaged.
        """
        stopped = self.scene.copies_at_stop.get(copy.node, {}).get(copy.partition)
        if stopped is None or stopped.ledger is not copy.ledger or copy.ledger.is_metadata:
            return found
        expected = found[0].base if found else copy.start
        for number, batch in enumerate([*found, None]):
            before = stopped.log.at(expected) if expected < copy.opened_end else None
            if before is not None and before != batch:
                copy.rotten_at = before.base
                return found[:number] + stopped.log.between(before.base, end)
            if batch is not None:
                expected = batch.last + 1
        return found

    def _drop_closed(self, node: NodeId, seen: _Seen, still: set[Replica]) -> None:
        for replica in [one for one in seen.replicas if one not in still]:
            copy = seen.replicas.pop(replica)
            if self.scene.copies[node].get(copy.partition) is copy:
                del self.scene.copies[node][copy.partition]

    def _gone(self, host: SimHost) -> None:
        if self._seen.pop(host.id, None) is not None:
            self._leave(host.id)
            self.scene.broker_epochs.pop(host.id, None)
        ended = host.exit
        if ended is not None and ended.status != 0 and not host.has_bad_disk:
            raise Violation("no node ends by itself", f"node {host.id}: {ended.reason}", None)

    def _leave(self, node: NodeId) -> None:
        if copies := self.scene.copies.pop(node, None):
            self.scene.copies_at_stop[node] = copies

    def _tell(self, listeners: "list[tuple[str, Callable[..., None]]]", *news: Any) -> None:
        for name, listener in listeners:
            self._checks[name] += 1
            listener(*news)

    def _say(self, copy: Copy, what: str) -> None:
        if self._observer is not None:
            self._observer.copy_changed(copy, what)


def _listeners(
    invariants: Sequence[Invariant], hook: str
) -> "list[tuple[str, Callable[..., None]]]":
    """The name and the method of each invariant that overrides this method of `Invariant`."""
    return [
        (one.name, getattr(one, hook))
        for one in invariants
        if getattr(type(one), hook) is not getattr(Invariant, hook)
    ]
