"""The assignor `uniform`: equal numbers of partitions per member, and few moves (KIP-848).

If all members subscribe to the same topics, a member keeps what it has up to its quota, and the
rest is handed out. Otherwise `balancing` evens out the numbers topic by topic.
"""

from tidelog.coordination.groups.consumer.assignors.balancing import balanced
from tidelog.coordination.groups.consumer.assignors.hash_order import (
    assignment_order,
    member_order,
    partition_order,
    subscription_order,
)
from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment,
    AssignorError,
    GroupSubscription,
    MemberSubscription,
    frozen,
)
from tidelog.model.ids import TopicId

NAME = "uniform"


def assign(group: GroupSubscription) -> dict[str, Assignment]:
    """The target assignment of every member that subscribes to a topic."""
    if not group.members:
        return {}
    by_id = {member.member_id: member for member in group.members}
    members = [by_id[member_id] for member_id in member_order(by_id)]
    if group.is_homogeneous:
        return _Homogeneous(members, group).assign()
    return balanced(members, group)


class _Homogeneous:
    """One assignment of a group whose members all subscribe to the same topics."""

    def __init__(self, members: list[MemberSubscription], group: GroupSubscription) -> None:
        self._members = members
        self._counts = group.partition_counts
        self._topics = subscription_order(members[0].topics)
        self._subscribed = frozenset(self._topics)
        self._unassigned = self._unassigned_partitions()
        self._kept: dict[str, dict[TopicId, set[int]]] = {}
        self._unfilled: list[tuple[str, int]] = []

    def assign(self) -> dict[str, Assignment]:
        if not self._topics:
            return {}
        total = sum(self._counts[topic] for topic in self._topics)
        self._revoke(*divmod(total, len(self._members)))
        self._hand_out()
        return {member_id: frozen(kept) for member_id, kept in self._kept.items()}

    def _unassigned_partitions(self) -> list[tuple[TopicId, int]]:
        taken: dict[TopicId, set[int]] = {}
        for member in self._members:
            for topic, partitions in member.assigned.items():
                taken.setdefault(topic, set()).update(partitions)
        return [
            (topic, partition)
            for topic in self._topics
            for partition in range(self._counts[topic])
            if partition not in taken.get(topic, ())
        ]

    def _revoke(self, quota: int, extras: int) -> None:
        """Take what exceeds each member's quota; `extras` members may have one partition more."""
        for index, member in enumerate(self._members):
            has_extra = extras > 0
            room = self._keep(member, quota + (1 if has_extra else 0))
            # A member with room gives its extra partition to a later one, if enough are left.
            if room > 0 and has_extra and len(self._members) - index > extras:
                room -= 1
                has_extra = False
            if room > 0:
                self._unfilled.append((member.member_id, room))
            if has_extra:
                extras -= 1

    def _keep(self, member: MemberSubscription, room: int) -> int:
        """Keep as many of the member's partitions as there is room for; the room that is left."""
        kept: dict[TopicId, set[int]] = {}
        for topic in assignment_order(member.assigned):
            if topic not in self._subscribed:
                continue
            ordered = partition_order(member.assigned[topic])
            kept[topic] = set(ordered[:room])
            self._unassigned += [(topic, partition) for partition in ordered[room:]]
            room -= len(kept[topic])
        self._kept[member.member_id] = kept
        return room

    def _hand_out(self) -> None:
        position = 0
        for member_id, room in self._unfilled:
            for topic, partition in self._unassigned[position : position + room]:
                self._kept[member_id].setdefault(topic, set()).add(partition)
            position += room
        if position < len(self._unassigned):
            raise AssignorError("Partitions were left unassigned")
