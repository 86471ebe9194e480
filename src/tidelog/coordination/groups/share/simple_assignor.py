"""The assignor `simple` of share groups.

Several members may have the same partition. Every partition that a member subscribes to is
assigned, the members get about the same number of partitions, and a member keeps partitions that it
has where this is possible.
"""

from collections.abc import Mapping
from typing import TypeAlias

from tidelog.model.ids import TopicId

SharePartitionId: TypeAlias = tuple[TopicId, int]


def assign(
    subscriptions: Mapping[str, frozenset[SharePartitionId]],
    current: Mapping[str, frozenset[SharePartitionId]],
) -> dict[str, frozenset[SharePartitionId]]:
    """The partitions of each member.

    `subscriptions` has the partitions that each member may get, `current` those that it has.
    """
    members = sorted(subscriptions)
    targets: dict[str, set[SharePartitionId]] = {member: set() for member in members}
    holders: dict[SharePartitionId, int] = {}
    partitions = sorted(set().union(*subscriptions.values())) if members else []
    for partition in partitions:
        holders[partition] = 0
    if not partitions:
        return {member: frozenset() for member in members}
    # If there are more members than partitions, several members share each partition.
    share = max(1, -(-len(members) // len(partitions)))
    wanted = max(1, -(-len(partitions) * share // len(members)))
    for member in members:
        for partition in sorted(current.get(member, frozenset()) & subscriptions[member]):
            if len(targets[member]) < wanted and holders[partition] < share:
                targets[member].add(partition)
                holders[partition] += 1
    _cover_partitions(partitions, subscriptions, targets, holders)
    _occupy_members(members, subscriptions, targets, holders)
    return {member: frozenset(found) for member, found in targets.items()}


def _cover_partitions(
    partitions: list[SharePartitionId],
    subscriptions: Mapping[str, frozenset[SharePartitionId]],
    targets: dict[str, set[SharePartitionId]],
    holders: dict[SharePartitionId, int],
) -> None:
    """Give each partition without a member to the member with the fewest partitions."""
    for partition in partitions:
        if holders[partition]:
            continue
        able = (member for member in targets if partition in subscriptions[member])
        member = min(able, key=lambda member: (len(targets[member]), member))
        targets[member].add(partition)
        holders[partition] += 1


def _occupy_members(
    members: list[str],
    subscriptions: Mapping[str, frozenset[SharePartitionId]],
    targets: dict[str, set[SharePartitionId]],
    holders: dict[SharePartitionId, int],
) -> None:
    """Give each member without partitions the partition that has the fewest members."""
    for member in members:
        if targets[member] or not subscriptions[member]:
            continue
        partition = min(subscriptions[member], key=lambda found: (holders[found], found))
        targets[member].add(partition)
        holders[partition] += 1
