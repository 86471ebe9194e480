"""The leader epochs of a partition's log, and the offset at which each begins (KIP-320)."""

from kio.schema.offset_for_leader_epoch.v4 import request as epochs
from kio.schema.offset_for_leader_epoch.v4.response import OffsetForLeaderEpochResponse

from tidelog.client.client import Client, Moved
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, Offset, TopicPartition
from tidelog.model.user_error import UserError

MOST = 12
"""Older epochs are not asked for."""


def epoch_starts(
    client: Client, partition: TopicPartition, current: LeaderEpoch
) -> list[tuple[LeaderEpoch, Offset]]:
    """Epochs with their start offsets, in ascending order; the newest `MOST` at most.

    Each question about the epoch before finds where that epoch ends, which is where the next one
    begins. Returns fewer epochs if the leader does not answer.
    """
    found: list[tuple[LeaderEpoch, Offset]] = []
    epoch = current
    while epoch >= 0 and len(found) < MOST:
        ended = _end_of(client, partition, epoch - 1) if epoch else None
        if ended is None:
            found.append((epoch, 0))
            break
        earlier, start = ended
        found.append((epoch, start))
        epoch = earlier
    return found[::-1]


def _end_of(
    client: Client, partition: TopicPartition, epoch: LeaderEpoch
) -> tuple[LeaderEpoch, Offset] | None:
    """The largest epoch that is not above this one, and where it ends; None if there is none."""
    asked = epochs.OffsetForLeaderPartition(
        partition=partition.partition, current_leader_epoch=-1, leader_epoch=epoch
    )
    topic = epochs.OffsetForLeaderTopic(topic=partition.topic, partitions=(asked,))
    request = epochs.OffsetForLeaderEpochRequest(replica_id=NO_NODE, topics=(topic,))
    try:
        answer = client.ask_leader(partition, request, OffsetForLeaderEpochResponse)
    except (UserError, Moved):
        return None
    (end,) = answer.topics[0].partitions
    if end.error_code is not ErrorCode.none or end.leader_epoch < 0:
        return None
    return end.leader_epoch, end.end_offset
