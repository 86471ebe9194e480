"""One partition that this node follows in one leader epoch."""

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
        """Whether it held every committed record at the leader's last response."""
        self.sent_offset = -1
        """The fetch offset in the leader's session; -1 if it must be sent again."""
        self.sent_start = -1
        """The log start offset in the leader's session."""
        self.retry_at: Millis = 0
        self.failures = 0
        """The number of responses in a row that could not be appended."""
        self.blames = 0
        """The number of searches in a row that have blamed it for failed fetches."""
        self.is_held_back = False
        """Whether it is left out while a fetch without it is tested."""

    @property
    def key(self) -> tuple[TopicId, int]:
        return self.replica.topic_id, self.replica.partition.partition


def back_off_ms(failures: int) -> Millis:
    """The back-off after this number of failures; it doubles each time."""
    return min(LONGEST_RETRY_MS, RETRY_MS << min(failures - 1, 16))
