"""The committed offset and the lag of each partition of a group."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tidelog.client.administration.group_admin import Committed, committed_offsets
from tidelog.client.administration.group_description import GroupDescription, MemberDescription
from tidelog.client.client import Client
from tidelog.client.log_offsets import LATEST, offsets_at
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Offset, TopicPartition


class GroupPosition(NamedTuple):
    partition: TopicPartition
    committed: Committed | None
    log_end_offset: Offset | None
    """None if the partition does not exist or has no leader."""
    member: MemberDescription | None
    """The member that the partition is assigned to."""

    @property
    def lag(self) -> Offset | None:
        if self.committed is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed.offset


def group_positions(client: Client, group: GroupDescription) -> list[GroupPosition]:
    """The partitions of each member, largest assignment first, then the unassigned partitions."""
    committed = committed_offsets(client, group.name)
    owned = [member for member in group.members if member.assignment]
    owned.sort(key=lambda member: -len(member.assignment))
    assigned = {one for member in owned for one in member.assignment}
    ends = _log_ends(client, assigned | committed.keys())
    owners: list[tuple[MemberDescription | None, Collection[TopicPartition]]] = [
        *((member, member.assignment) for member in owned),
        (None, committed.keys() - assigned),
    ]
    return [
        GroupPosition(one, committed.get(one), ends.get(one), member)
        for member, partitions in owners
        for one in sorted(partitions)
    ]


def _log_ends(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Offset]:
    led = _led_partitions(client, {one.topic for one in partitions})
    found = offsets_at(client, [one for one in led if one in partitions], LATEST)
    return {where: one.offset for where, one in found.items() if one.error is ErrorCode.none}


def _led_partitions(client: Client, topics: Collection[str]) -> Iterator[TopicPartition]:
    """The partitions of these topics that have a leader. Topics that do not exist have none."""
    if not topics:
        return
    for topic in client.metadata(tuple(sorted(topics))).topics:
        for one in topic.partitions:
            if one.leader_id != NO_NODE:
                yield TopicPartition(topic.name or "", one.partition_index)
