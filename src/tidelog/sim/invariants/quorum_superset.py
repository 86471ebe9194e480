"""Every replica that may be elected holds all committed records.

The leader of an epoch commits a record only when all members of the controller's in-sync set hold
it (F12). Each member holds all records committed so far. The check skips a member that has
restarted if the controller does not know of the restart yet.

Under the quorum rule, any majority of the replicas that count in an election includes a replica
that holds all committed records (F82, F84).
"""

from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.ids import NO_EPOCH, NodeId, Offset
from tidelog.replication.rules import QUORUM, majority_of
from tidelog.sim.checks.scene import CommittedRecords, Copy
from tidelog.sim.invariants.invariant import Invariant


class QuorumSuperset(Invariant):
    name = "quorum superset"

    def image_changed(self, node: NodeId, image: ClusterImage) -> None:
        if image is not self.scene.image:
            return
        for ledger in self.scene.by_name.values():
            placed = self.scene.placed(ledger)
            if placed is not None:
                self._check_leader(ledger, placed)
                self._check_members(ledger, placed)

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        if copy.epoch != NO_EPOCH and not copy.ledger.is_metadata:
            placed = self.scene.placed(copy.ledger)
            if placed is not None and placed.leader_epoch == copy.epoch:
                self._check_members(copy.ledger, placed)

    def _check_leader(self, ledger: CommittedRecords, placed: PartitionImage) -> None:
        leader = self.scene.copy(placed.leader, ledger)
        if leader is not None and leader.epoch == placed.leader_epoch:
            unknown = set(placed.isr) - leader.maximal_isr
            if unknown:
                raise self.violated(
                    f"the controller counts {sorted(unknown)} as in sync in epoch {leader.epoch}, "
                    f"but the leader, node {leader.node}, commits without them",
                    ledger,
                )

    def _check_members(self, ledger: CommittedRecords, placed: PartitionImage) -> None:
        if self.scene.is_beyond and placed.leader_epoch in ledger.unclean_epochs:
            return  # LeaderCompleteness checks an unclean leader when it begins to lead
        end = ledger.committed_end
        if rule_of(self.scene.image, ledger.partition.topic) is QUORUM:
            self._check_majorities(ledger, placed)
            return
        for member in placed.isr:
            if self._lacks(member, ledger):
                raise self.violated(
                    f"node {member} is in sync in epoch {placed.leader_epoch} and lacks offset "
                    f"{end - 1}, which was committed",
                    ledger,
                )

    def _check_majorities(self, ledger: CommittedRecords, placed: PartitionImage) -> None:
        lacking = [one for one in sorted({*placed.isr, *placed.elr}) if self._lacks(one, ledger)]
        if len(lacking) >= majority_of(placed.replicas):
            raise self.violated(
                f"nodes {lacking} count in an election after epoch {placed.leader_epoch} and lack "
                f"offset {ledger.committed_end - 1}, which was committed",
                ledger,
            )

    def _lacks(self, node: NodeId, ledger: CommittedRecords) -> bool:
        """Whether the node certainly lacks the last committed record."""
        end = ledger.committed_end
        settled = ledger.committed.at(end - 1)
        copy, broker = self.scene.copy(node, ledger), self.scene.image.brokers.get(node)
        if copy is None or broker is None or settled is None or end <= copy.start:
            return False
        if self.scene.broker_epochs.get(node) != broker.epoch:
            return False  # the node has restarted, and the controller does not know it yet
        found = copy.log.at(end - 1)
        return found is None or found.key != settled.key
