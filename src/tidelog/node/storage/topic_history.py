"""The topic deletions that this run read from the metadata before it opened partitions.

If a partition directory has no readable topic id, it belongs to the topic in its name, unless
another topic had this name while the node was down. If there was another topic, the metadata that
the node reads at its start contains the record that deleted that topic. There is one exception: a
leader's snapshot may have replaced this record.
"""

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import TopicId


class TopicHistory:
    __slots__ = ("_changed", "is_whole", "removed")

    def __init__(self) -> None:
        self.is_whole = True
        """Whether this node started with all the metadata of its last run."""
        self.removed: dict[TopicId, str] = {}
        """The names of topics that committed records have deleted, by topic id."""
        self._changed: dict[str, None] = {}

    def snapshot_loaded(self, old: ClusterImage, new: ClusterImage) -> None:
        """Note topics that are new in a leader's snapshot, which does not list deleted topics."""
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                self._changed[name] = None

    def may_have_had_another(self, name: str) -> bool:
        """Whether another topic may have had this name while this node was down."""
        return not self.is_whole or name in self._changed or name in self.removed.values()
