"""The uniform assignment of a group whose members subscribe to different topics.

Members keep the partitions of topics that they still subscribe to. Unassigned partitions go to the
least loaded subscriber. Then partitions move, topic by topic, from the most to the least loaded
subscriber, until no topic improves or the limit of rounds is reached.
"""

from collections.abc import Mapping
from fractions import Fraction

from tidelog.coordination.groups.consumer.assignors.load_order import LoadOrder
from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment,
    GroupSubscription,
    MemberSubscription,
    frozen,
)
from tidelog.model.ids import TopicId

_MAX_ROUNDS = 16
_NOBODY = -1


def balanced(members: list[MemberSubscription], group: GroupSubscription) -> dict[str, Assignment]:
    """The target assignment of every member; members are identified by their index."""
    builder = _Balancer(members, group.partition_counts)
    if not builder.subscribers:
        return {}
    builder.keep_assigned()
    builder.assign_rest()
    builder.balance()
    return builder.result()


class _Balancer:
    def __init__(
        self, members: list[MemberSubscription], partition_counts: Mapping[TopicId, int]
    ) -> None:
        self._members = members
        self._counts = partition_counts
        self.subscribers: dict[TopicId, list[int]] = {}
        for index, member in enumerate(members):
            for topic in member.topics:
                self.subscribers.setdefault(topic, []).append(index)
        self._owners = {topic: [_NOBODY] * partition_counts[topic] for topic in self.subscribers}
        self._sizes = [0] * len(members)
        self._order = LoadOrder(self._sizes)

    def keep_assigned(self) -> None:
        for index, member in enumerate(self._members):
            topics = frozenset(member.topics)
            for topic, partitions in member.assigned.items():
                if topic in topics:
                    for partition in partitions:
                        self._owners[topic][partition] = index
                    self._sizes[index] += len(partitions)

    def assign_rest(self) -> None:
        for topic in self._sorted_topics(1):
            self._order.start(self.subscribers[topic])
            for partition, owner in enumerate(self._owners[topic]):
                if owner == _NOBODY:
                    self._move(topic, partition, self._order.next_least_loaded())

    def balance(self) -> None:
        topics = self._sorted_topics(2)
        last_changed = _NOBODY
        for _ in range(_MAX_ROUNDS):
            for index, topic in enumerate(topics):
                if index == last_changed:
                    return
                if self._balance_topic(topic) or last_changed == _NOBODY:
                    last_changed = index

    def result(self) -> dict[str, Assignment]:
        chosen: list[dict[TopicId, set[int]]] = [{} for _ in self._members]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                chosen[owner].setdefault(topic, set()).add(partition)
        return {
            member.member_id: frozen(partitions)
            for member, partitions in zip(self._members, chosen, strict=True)
        }

    def _sorted_topics(self, least_subscribers: int) -> list[TopicId]:
        """Topics with many partitions per subscriber first."""

        def key(topic: TopicId) -> tuple[Fraction, int, int, int]:
            count = len(self.subscribers[topic])
            most, least = topic.int >> 64, topic.int & 0xFFFFFFFFFFFFFFFF
            return Fraction(-self._counts[topic], count), count, _signed(most), _signed(least)

        topics = [t for t in self.subscribers if len(self.subscribers[t]) >= least_subscribers]
        return sorted(topics, key=key)

    def _balance_topic(self, topic: TopicId) -> bool:
        """Move partitions from the most to the least loaded subscriber; whether any was moved."""
        order, owners = self._order, self._owners[topic]
        if order.start(self.subscribers[topic]) <= 1:
            return False
        movable: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            movable.setdefault(owner, []).append(partition)
        moved = False
        while not order.is_balanced:
            loaded = order.next_most_loaded()
            while loaded is not None and not movable.get(loaded):
                order.exclude_most_loaded()
                loaded = order.next_most_loaded()
            if loaded is None:
                break
            partition = movable[loaded].pop()
            receiver = order.next_least_loaded()
            if order.is_balanced:
                break
            self._move(topic, partition, receiver)
            moved = True
        return moved

    def _move(self, topic: TopicId, partition: int, receiver: int) -> None:
        owner = self._owners[topic][partition]
        if owner != _NOBODY:
            self._sizes[owner] -= 1
        self._owners[topic][partition] = receiver
        self._sizes[receiver] += 1


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
