"""Renames or holds partition directories that do not match the metadata (F58).

A directory is deleted only if a committed record deletes the topic with its topic id, or removes
the replica from this node. Any other mismatch may be damage to the directory or to the metadata, so
the directory is not deleted. As in Kafka, it is renamed to `<topic>-<n>.<uuid>-stray` and kept. If
no other replica is known to have its records, the directory is held instead. A held directory keeps
its name, and is out of use until an operator has checked it. docs/adr/0020 has the reasons.
"""

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from tidelog.controller.image.image import LOST_DIRECTORY, ClusterImage, PartitionImage, TopicImage
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.model.ids import NodeId, TopicId, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.topic_config import TopicConfigs
from tidelog.node.storage.storage import Storage
from tidelog.node.storage.topic_history import TopicHistory

log = logging.getLogger(__name__)

_DAMAGED = "has a missing or damaged partition.metadata"
_MISPLACED = "has the partition.metadata of another partition of its topic"


class StrayReplicas:
    def __init__(
        self,
        me: NodeId,
        clock: Clock,
        storage: Storage,
        configs: TopicConfigs,
        offline: dict[TopicPartition, TopicId],
        located: Callable[[TopicId, int, UUID], None],
        distrust: Callable[[], None],
    ) -> None:
        """`offline` holds the unusable partitions; `distrust` registers the broker as unclean."""
        self._me = me
        self._clock = clock
        self._storage = storage
        self._configs = configs
        self._offline = offline
        self._located = located
        self._distrust = distrust
        self._held: dict[TopicPartition, TopicId] = {}

    def sort_out(self, partition: TopicPartition, image: ClusterImage, past: TopicHistory) -> None:
        """Handle a directory that was found when the node started."""
        had_namesake = past.may_have_had_another(partition.topic)
        topic, placed = image.topics.get(partition.topic), image.partition(partition)
        if topic is None or placed is None or self._me not in placed.replicas:
            self._leave(partition, image, past.removed, "is no longer placed on this node")
            return
        match self._storage.belongs_to(partition, topic.topic_id, had_namesake=had_namesake):
            case Belonging.NO:
                self._leave(partition, image, past.removed, "belongs to another topic of this name")
                self._reregister_as_unclean(placed)
            case Belonging.UNKNOWN | Belonging.HELD if not self._is_only_copy(placed):
                self.set_aside(partition, _DAMAGED)
                self._reregister_as_unclean(placed)
            case Belonging.MISPLACED if not self._is_only_copy(placed):
                self.set_aside(partition, _MISPLACED)
                self._reregister_as_unclean(placed)
            case Belonging.HELD:
                self._hold(partition, topic, _DAMAGED)
            case Belonging.MISPLACED:
                self._hold(partition, topic, _MISPLACED)
            case Belonging.UNKNOWN if had_namesake:
                self._storage.hold(partition)
                self._hold(partition, topic, _DAMAGED)
            case Belonging.UNKNOWN:
                log.warning(
                    "%s had a missing or damaged partition.metadata; it is rewritten, since "
                    "there has been no other topic of this name",
                    partition,
                )
                self._storage.adopt(partition, topic.topic_id)
            case Belonging.YES:
                pass

    def is_held(self, partition: TopicPartition, topic_id: TopicId) -> bool:
        """Whether the partition is out of use until an operator has checked its directory."""
        return self._held.get(partition) == topic_id

    def let_go(self, partition: TopicPartition) -> None:
        """Rename a held directory whose topic was deleted or whose replica was removed."""
        if self._held.pop(partition, None) is not None:
            self.set_aside(partition, _DAMAGED)

    def set_aside(self, partition: TopicPartition, why: str) -> None:
        name = self._storage.set_aside(partition)
        log.warning(
            "%s %s: its directory is now %s and is kept; `tidelog stray` lists and restores it",
            partition,
            why,
            name,
        )

    def _leave(
        self,
        partition: TopicPartition,
        image: ClusterImage,
        removed: Mapping[TopicId, str],
        why: str,
    ) -> None:
        if self._storage.topic_id(partition) in removed:
            delay = self._configs.of(image, partition.topic).log.file_delete_delay_ms
            log.info(
                "%s: its topic was deleted; its directory will be deleted in %d ms",
                partition,
                delay,
            )
            self._storage.delete(partition, self._clock.now, delay)
        else:
            self.set_aside(partition, why)

    def _is_only_copy(self, placed: PartitionImage) -> bool:
        """Whether no other replica is known to hold all committed records."""
        return not ({*placed.isr, *placed.elr} - {self._me})

    def _hold(self, partition: TopicPartition, topic: TopicImage, why: str) -> None:
        log.error(
            "%s %s and may hold the records of another partition or of an earlier topic of this "
            "name, and no other replica is known to have its records: it is out of use; if it "
            "belongs to the topic %s as it is now, stop this node, run `tidelog stray --dir DIR "
            "restore %s`, and start the node again",
            partition,
            why,
            topic.name,
            partition,
        )
        self._held[partition] = topic.topic_id
        self._offline[partition] = topic.topic_id
        self._located(topic.topic_id, partition.partition, LOST_DIRECTORY)

    def _reregister_as_unclean(self, placed: PartitionImage) -> None:
        if self._me in placed.isr or self._me in placed.elr:
            self._distrust()
