"""The leader finds the offset where a follower's log diverges."""

import pytest
from tests.unit.log.support import NOW, append, batch, new_log
from tests.unit.node.following import TOPIC_ID, Owner

from tidelog.log.partition import PartitionLog
from tidelog.model.effects import EpochEnd, PartitionFetch
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions import reading
from tidelog.node.partitions.replica import Replica
from tidelog.replication.divergence import diverging

PARTITION = TopicPartition("orders", 0)


def log_with_epochs() -> PartitionLog:
    """A log with epoch 2 from 0 to 4 and epoch 5 from 4 to 6; its start offset is 1."""
    log = new_log()
    for epoch, count in ((2, 4), (5, 2)):
        append(log, batch(count), epoch=epoch)
    log.advance_log_start(1)
    return log


def by_the_rules(log: PartitionLog, last_epoch: int, offset: int) -> EpochEnd | ErrorCode | None:
    if last_epoch == NO_EPOCH:
        return None
    end = log.epoch_end(last_epoch)
    if end.epoch == NO_EPOCH or offset < log.log_start_offset:
        return ErrorCode.offset_out_of_range
    return diverging(end, last_epoch, offset, log.log_start_offset)


@pytest.mark.parametrize("last_epoch", [NO_EPOCH, 0, 2, 3, 5, 6])
@pytest.mark.parametrize("offset", range(8))
def test_the_logs_part_where_the_rules_say(last_epoch: int, offset: int) -> None:
    replica = Replica(PARTITION, TOPIC_ID, log_with_epochs(), 0, Clock(NOW), Owner())
    read = PartitionFetch(PARTITION, offset, 1_000, 5, last_epoch, 0)

    assert reading.divergence_of(replica, read) == by_the_rules(replica.log, last_epoch, offset)
