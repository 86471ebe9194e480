"""One partition that this node follows in one leader epoch."""

from tidelog.model.ids import LeaderEpoch, TopicId
from tidelog.node.partitions.replica import Replica
from tidelog.replication.isr.follower import PartitionFollower


class Followed(PartitionFollower):
    """The state machine of a follower, and the replica that its effects change."""

    __slots__ = ("replica",)

    def __init__(self, replica: Replica, epoch: LeaderEpoch) -> None:
        super().__init__(epoch)
        self.replica = replica

    @property
    def key(self) -> tuple[TopicId, int]:
        return self.replica.topic_id, self.replica.partition.partition
