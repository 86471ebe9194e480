"""Where two logs part: the leader says from the follower's last epoch, the follower cuts there.

One answer may not be enough: after several fast leader changes the follower cuts, fetches with an
older last epoch, and is answered again, until the epochs match (KIP-279, KIP-595).
"""

from tidelog.model.effects import EpochEnd
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset


def diverging(
    mine: EpochEnd, last_fetched_epoch: LeaderEpoch, fetch_offset: Offset, log_start: Offset
) -> EpochEnd | None:
    """The leader's side: None while the logs agree up to `fetch_offset`.

    `mine` is the leader's own answer for the follower's last epoch: the largest epoch not above it
    and where that ends here.
    """
    if last_fetched_epoch == NO_EPOCH and fetch_offset <= log_start:
        return None  # the follower has nothing yet
    if mine.epoch == NO_EPOCH:
        return EpochEnd(max(0, last_fetched_epoch), log_start)
    if mine.epoch < last_fetched_epoch or mine.end_offset < fetch_offset:
        return mine
    return None


def truncation_point(answer: EpochEnd, mine: EpochEnd, log_start: Offset) -> Offset:
    """The follower's side: everything at or past this offset is cut.

    `mine` is the follower's own answer for the epoch that the leader named.
    """
    if mine.epoch == NO_EPOCH:
        return min(answer.end_offset, log_start)
    return min(answer.end_offset, mine.end_offset)
