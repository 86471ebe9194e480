"""Wrong rules of partitions under the quorum rule: commits and elections (ADR 27)."""

from collections.abc import Collection, Iterable, Mapping

from tidelog.controller.decide.partition_change import Election, ElectionRules, _Elected
from tidelog.controller.image.image import PartitionImage
from tidelog.model.ids import NO_NODE, LeaderEpoch, NodeId, Offset
from tidelog.node.clock import Clock
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.messages.broker_heartbeat import LogEndReport
from tidelog.replication.rules import ReplicasKnown
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _from_in_sync_set() -> Iterable[Replacement]:
    def elect(
        partition: PartitionImage, known: ReplicasKnown, election: Election, rules: ElectionRules
    ) -> _Elected:
        candidates = (partition.leader, *known.replicas)
        return _Elected(
            next((one for one in candidates if one in known.isr and rules.may_lead(one)), NO_NODE)
        )

    yield Replacement("tidelog.controller.decide.partition_change:_elect_by_majority", elect)


def _any_report() -> Iterable[Replacement]:
    def is_current(report: LogEndReport, leader_epoch: LeaderEpoch) -> bool:
        return True

    yield Replacement("tidelog.controller.log_ends:_is_current", is_current)


def _by_counting() -> Iterable[Replacement]:
    def committed(
        ends: Mapping[NodeId, Offset],
        voters: Collection[NodeId],
        epoch_start: Offset,
        floor: Offset,
    ) -> Offset:
        descending = sorted((ends[voter] for voter in voters), reverse=True)
        return max(floor, descending[len(descending) // 2])

    def append_first_record(replica: Replica, clock: Clock) -> None:
        pass

    yield Replacement("tidelog.replication.rules:quorum_committed", committed)
    yield Replacement(
        "tidelog.node.partitions.assignments:append_first_record", append_first_record
    )


def _lost_tails() -> Iterable[Replacement]:
    def is_complete(replica: NodeId, known: ReplicasKnown) -> bool:
        return True

    yield Replacement("tidelog.replication.rules:_is_complete", is_complete)


MAJORITIES = (
    Mutant(
        "elects-from-isr",
        ("F82",),
        "Under the quorum rule, a member of the in-sync set is elected without comparing logs.",
        _from_in_sync_set,
        "an_in_sync_replica_without_a_committed_record_is_not_elected",
    ),
    Mutant(
        "any-report",
        ("F82",),
        "A log end counts in an election although it was reported in an older leader epoch.",
        _any_report,
        "a_report_from_an_older_epoch_does_not_count",
    ),
    Mutant(
        "counts-copies",
        ("F83",),
        "A majority commits a record of an older epoch without a record of the leader's epoch.",
        _by_counting,
        "a_record_of_an_older_epoch_is_not_committed_by_counting",
    ),
    Mutant(
        "counts-lost-tails",
        ("F84",),
        "A replica that may have lost its tail counts towards a majority.",
        _lost_tails,
        "a_replica_that_lost_its_tail_does_not_count",
    ),
)
