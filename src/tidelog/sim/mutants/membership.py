"""Wrong rules about in-sync sets: the high watermark, and joining and leaving a set."""

from collections.abc import Iterable
from dataclasses import replace

from kio.schema.alter_partition.v3.request import BrokerState

from tidelog.controller.decide import partition_change
from tidelog.controller.decide.partition_change import ElectionRules, Target
from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.effects import FetchBatches
from tidelog.model.ids import NodeId, Offset, TopicId, TopicPartition
from tidelog.model.replication_events import Left
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord
from tidelog.replication.commit import InSync
from tidelog.replication.isr.leader import FollowerFetched, LeaderEffect, PartitionLeader
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _agreed_only() -> Iterable[Replacement]:
    def settle_in_sync(self: PartitionLeader) -> None:
        self._in_sync = InSync(self._agreed, self._agreed, self._minimum)

    yield Replacement(
        "tidelog.replication.isr.leader:PartitionLeader._settle_in_sync", settle_in_sync
    )


def _shrinks_alone() -> Iterable[Replacement]:
    right = PartitionLeader._propose

    def propose(
        self: PartitionLeader,
        isr: frozenset[NodeId],
        effects: list[LeaderEffect],
        left: tuple[Left, ...] = (),
    ) -> None:
        if isr < self._agreed:
            self._agreed = isr
            self._settle_in_sync()
        else:
            right(self, isr, effects, left)

    yield Replacement("tidelog.replication.isr.leader:PartitionLeader._propose", propose)


def _past_the_watermark() -> Iterable[Replacement]:
    def join_offset(self: PartitionLeader) -> Offset:
        return self.high_watermark

    yield Replacement(
        "tidelog.replication.isr.leader:PartitionLeader._join_offset", property(join_offset)
    )


def _remembers_ends() -> Iterable[Replacement]:
    right = Replica.follower_fetched
    remembered: dict[tuple[TopicPartition, NodeId], Offset] = {}

    def follower_fetched(self: Replica, event: FollowerFetched) -> None:
        key = self.partition, event.replica
        best = max(event.offset, min(remembered.get(key, 0), self.log.log_end_offset))
        remembered[key] = best
        right(self, replace(event, offset=best))

    yield Replacement("tidelog.node.partitions.replica:Replica.follower_fetched", follower_fetched)


def _any_run() -> Iterable[Replacement]:
    right = Partitions.prove

    def prove(self: Partitions, effect: FetchBatches, *, waits: bool = False) -> None:
        right(self, replace(effect, replica_epoch=-1), waits=waits)

    yield Replacement("tidelog.node.partitions.partitions:Partitions.prove", prove)


def _same_leader_epoch() -> Iterable[Replacement]:
    right = partition_change.change_partition

    def change_partition(
        topic_id: TopicId,
        index: int,
        partition: PartitionImage,
        target: Target,
        rules: ElectionRules,
    ) -> PartitionChangeRecord | None:
        wrong = replace(target, forgets_fetches=False)
        return right(topic_id, index, partition, wrong, rules)

    yield Replacement(
        "tidelog.controller.decide.directory_assignment:change_partition", change_partition
    )


def _fenced_too() -> Iterable[Replacement]:
    right = Replica.follower_fetched

    def follower_fetched(self: Replica, event: FollowerFetched) -> None:
        right(self, replace(event, is_eligible=True))

    def is_eligible(image: ClusterImage, member: BrokerState) -> bool:
        return member.broker_id in image.brokers

    yield Replacement("tidelog.node.partitions.replica:Replica.follower_fetched", follower_fetched)
    yield Replacement("tidelog.controller.decide.alter_partition:_is_eligible", is_eligible)


MEMBERSHIP = (
    Mutant(
        "agreed-isr",
        ("F12",),
        "The leader commits without a replica that the controller may have added to the ISR.",
        _agreed_only,
        "a_replica_that_may_be_in_sync_is_not_committed_without",
    ),
    Mutant(
        "stale-watermark",
        ("F13",),
        "A new leader admits replicas that reach its own high watermark, which may be stale.",
        _past_the_watermark,
        "a_stale_watermark_lets_in_nobody_who_lacks_a_committed_record",
    ),
    Mutant(
        "remembered-end",
        ("F14",),
        "The leader keeps the log end offset of a replica that is removed and added again.",
        _remembers_ends,
        "a_replica_removed_and_added_again_begins_from_nothing",
    ),
    Mutant(
        "any-broker-epoch",
        ("F15",),
        "A fetch counts for a replica even when an earlier run of its broker sent it.",
        _any_run,
        "a_fetch_from_before_a_lossy_restart_arrives_late",
    ),
    Mutant(
        "same-leader-epoch",
        ("F15",),
        "A follower that has lost records is still judged by fetches from before the loss.",
        _same_leader_epoch,
        "a_fetch_from_before_a_follower_lost_records_arrives_late",
    ),
    Mutant(
        "fenced-in-isr",
        ("F16",),
        "A replica joins the in-sync set although its broker is fenced or shutting down.",
        _fenced_too,
        "a_fenced_broker_does_not_join_the_in_sync_set",
    ),
    Mutant(
        "shrinks-alone",
        ("F29",),
        "A leader removes a silent replica from the ISR without asking the controller.",
        _shrinks_alone,
        "a_leader_behind_a_partition_commits_nothing_alone",
    ),
)
