"""The interface through which the quorum reports to its node."""

from typing import Protocol

from tidelog.model.ids import LeaderEpoch, NodeId, TopicId


class QuorumListener(Protocol):
    """Called when the leader or the voters of the quorum change, or when a topic is deleted."""

    def topic_removed(self, topic_id: TopicId, name: str) -> None:
        """A committed record in this node's log deletes the topic."""

    def leader_known(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        """Another node leads the quorum."""

    def leadership_taken(self, epoch: LeaderEpoch) -> None:
        """This node leads, and everything before its epoch is committed and applied."""

    def leadership_lost(self) -> None: ...

    def voters_changed(self) -> None:
        """The voter set or a voter's endpoint has changed."""
