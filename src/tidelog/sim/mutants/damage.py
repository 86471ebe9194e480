"""Wrong rules about damaged and misplaced data."""

from collections.abc import Iterable, Sequence

from tidelog.controller.image.image import ClusterImage
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.recovery.continuity import ContinuityVerdict, tail_of
from tidelog.log.segments.segment import Segment
from tidelog.model.ids import Offset, TopicPartition
from tidelog.node.storage.stray_replicas import StrayReplicas
from tidelog.node.storage.topic_history import TopicHistory
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _deletes_strays() -> Iterable[Replacement]:
    def sort_out(
        self: StrayReplicas,
        partition: TopicPartition,
        image: ClusterImage,
        past: TopicHistory,
    ) -> None:
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        is_placed = topic is not None and placed is not None and self._me in placed.replicas
        if (
            not is_placed
            or topic is None
            or self._storage.belongs_to(partition, topic.topic_id) is not Belonging.YES
        ):
            self._storage.delete(partition, self._clock.now, 0)

    yield Replacement("tidelog.node.storage.stray_replicas:StrayReplicas.sort_out", sort_out)


def _any_segments() -> Iterable[Replacement]:
    def check(
        segments: Sequence[Segment], count: int, *, has_gaps: bool, recovery_point: Offset | None
    ) -> ContinuityVerdict:
        tails = tuple(tail_of(one, has_gaps=True) for one in segments[:count])
        end = tails[-1].next_offset if tails else 0
        return ContinuityVerdict(count, end, tails, None)

    yield Replacement("tidelog.log.recovery.continuity:check", check)


DAMAGE = (
    Mutant(
        "any-segments",
        ("F54",),
        "After a clean stop a log is trusted whether or not its segments follow each other.",
        _any_segments,
        "a_replica_that_has_lost_a_segment_does_not_lead_without_it",
    ),
    Mutant(
        "deletes-strays",
        ("F58",),
        "A directory that does not fit the metadata is deleted, whatever the reason is.",
        _deletes_strays,
        "the_only_copy_with_a_damaged_id_is_kept",
    ),
)
