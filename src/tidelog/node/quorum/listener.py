"""What the quorum reports to its node."""

from typing import Protocol

from tidelog.controller.image.image import ClusterImage
from tidelog.model.ids import LeaderEpoch, NodeId, TopicId


class QuorumListener(Protocol):
    """Who is told of what the quorum decides."""

    def image_changed(self, old: ClusterImage, new: ClusterImage, *, by_records: bool) -> None:
        """By committed records one after the other, or by a snapshot that stands for many."""

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        """A committed record in this node's log deletes the topic."""

    def leader_known(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        """Another node leads."""

    def leadership_taken(self, epoch: LeaderEpoch) -> None:
        """This node leads, and everything before its epoch is committed and applied."""

    def leadership_lost(self) -> None: ...

    def voters_changed(self) -> None:
        """Other voters are in force, or the same ones are elsewhere."""
