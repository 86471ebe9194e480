"""Moves leaderships back to preferred leaders (auto.leader.rebalance.enable)."""

from tidelog.controller.decide.decision import DecideContext
from tidelog.controller.decide.elections import elect, partitions_where
from tidelog.controller.decide.partition_change import Election
from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord

BALANCE_LIMIT = 1_000
"""The maximum number of leaderships to move in one decision, so that requests do not wait long."""


def balance_leaders(image: ClusterImage, context: DecideContext) -> list[PartitionChangeRecord]:
    """Move leadership back to in-sync preferred leaders (auto.leader.rebalance.enable)."""
    records: list[PartitionChangeRecord] = []
    for located in partitions_where(image, _is_imbalanced):
        if not image.is_active(located[2].preferred_leader):
            continue
        record = elect(image, located, Election.PREFERRED, context)
        if record is not None:
            records.append(record)
        if len(records) == BALANCE_LIMIT:
            break
    return records


def _is_imbalanced(partition: PartitionImage) -> bool:
    return partition.leader != partition.preferred_leader and (
        partition.preferred_leader in partition.isr
    )
