"""Finds where a follower's log diverges from the leader's log, and where to truncate it.

The leader returns the end offset of an epoch, and the follower truncates its log accordingly.

After several fast leader changes, one truncation may not be enough. The follower then fetches with
an older last epoch and truncates again, until the epochs match (KIP-279, KIP-595).
"""

from tidelog.model.effects import EpochEnd
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset


def diverging(
    mine: EpochEnd, last_fetched_epoch: LeaderEpoch, fetch_offset: Offset, log_start: Offset
) -> EpochEnd | None:
    """The divergence to report to a follower; None if the logs agree up to `fetch_offset`.

    `mine` is the leader's own entry for the follower's last epoch: the largest epoch in the
    leader's log that is not above it, and the end offset of that epoch.
    """
    if last_fetched_epoch == NO_EPOCH and fetch_offset <= log_start:
        return None  # the follower's log is empty
    if mine.epoch == NO_EPOCH:
        return EpochEnd(max(0, last_fetched_epoch), log_start)
    if mine.epoch < last_fetched_epoch or mine.end_offset < fetch_offset:
        return mine
    return None


def truncation_point(answer: EpochEnd, mine: EpochEnd, log_start: Offset) -> Offset:
    """The offset to which the follower truncates its log.

    `mine` is the follower's own entry for the epoch that the leader named.
    """
    if mine.epoch == NO_EPOCH:
        return min(answer.end_offset, log_start)
    return min(answer.end_offset, mine.end_offset)
