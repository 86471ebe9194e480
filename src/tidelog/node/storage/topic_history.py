"""What this run has seen of topics before it began to hold partitions: is a name still the same?

A partition directory without a readable id belongs to the topic of its name, unless there was
another topic of that name while this node was down. The records that deleted it are then in the
metadata that the node reads at its start, or a leader's snapshot stands for them.
"""

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import TopicId


class TopicHistory:
    __slots__ = ("_changed", "is_whole", "removed")

    def __init__(self) -> None:
        self.is_whole = True
        """Whether this node began with the metadata that its last run had."""
        self.removed: dict[TopicId, str] = {}
        """Topics that committed records deleted, by id."""
        self._changed: dict[str, None] = {}

    def snapshot_loaded(self, old: ClusterImage, new: ClusterImage) -> None:
        """A leader's snapshot says what there is, and not what there was in between."""
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                self._changed[name] = None

    def may_have_had_another(self, name: str) -> bool:
        """Whether there may have been another topic of this name while this node was down."""
        return not self.is_whole or name in self._changed or name in self.removed.values()
