"""Wrong rules about damaged and misplaced data."""

from collections.abc import Iterable, Mapping

from tidelog.controller.image import ClusterImage
from tidelog.log.directory import Belonging
from tidelog.model.ids import TopicId, TopicPartition
from tidelog.node.stray_replicas import StrayReplicas
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _deletes_strays() -> Iterable[Replacement]:
    def sort_out(
        self: StrayReplicas,
        partition: TopicPartition,
        image: ClusterImage,
        removed: Mapping[TopicId, str],
    ) -> None:
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        is_placed = topic is not None and placed is not None and self._me in placed.replicas
        if (
            not is_placed
            or topic is None
            or self._storage.belongs_to(partition, topic.topic_id) is not Belonging.YES
        ):
            self._storage.delete(partition, self._clock.now, 0)

    yield Replacement("tidelog.node.stray_replicas:StrayReplicas.sort_out", sort_out)


DAMAGE = (
    Mutant(
        "deletes-strays",
        ("F58",),
        "A directory that does not fit the metadata is deleted, whatever the reason is.",
        _deletes_strays,
        "the_only_copy_with_a_damaged_id_is_kept_and_restored",
    ),
)
