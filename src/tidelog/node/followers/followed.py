"""One partition as a follower follows it in one leader epoch."""

from tidelog.model.ids import LeaderEpoch, Millis, TopicId
from tidelog.node.partitions.replica import Replica

RETRY_MS: Millis = 50
LONGEST_RETRY_MS: Millis = 5_000


class Followed:
    __slots__ = (
        "blames",
        "epoch",
        "failures",
        "is_held_back",
        "is_in_session",
        "is_in_sync",
        "replica",
        "retry_at",
        "sent_offset",
        "sent_start",
    )

    def __init__(self, replica: Replica, epoch: LeaderEpoch) -> None:
        self.replica = replica
        self.epoch = epoch
        self.is_in_session = False
        self.is_in_sync = False
        """Whether it held all that was committed when the leader answered last."""
        self.sent_offset = -1
        """What the leader's session believes that we ask for; -1 when that is not so any more."""
        self.sent_start = -1
        """Where the leader's session believes that our log begins."""
        self.retry_at: Millis = 0
        self.failures = 0
        """How often in a row what the leader sent for it could not be appended."""
        self.blames = 0
        """How often in a row a whole fetch has failed on its account."""
        self.is_held_back = False
        """It is left out while a fetch without it shows whether it is to blame."""

    @property
    def key(self) -> tuple[TopicId, int]:
        return self.replica.topic_id, self.replica.partition.partition


def back_off_ms(failures: int) -> Millis:
    """How long a partition waits that has failed so often: twice as long each time."""
    return min(LONGEST_RETRY_MS, RETRY_MS << min(failures - 1, 16))
