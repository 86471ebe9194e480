"""The assignor `range`: each topic is cut into ranges of partitions, one range per subscriber.

Members are sorted by instance id, and members without one by member id, so the same partition
numbers of all topics go to the same member. The previous assignment plays no role.
"""

from collections import Counter

from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment,
    GroupSubscription,
    MemberSubscription,
)
from tidelog.model.ids import TopicId

NAME = "range"


def assign(group: GroupSubscription) -> dict[str, Assignment]:
    """The target assignment of every member."""
    members = sorted(group.members, key=_sort_key)
    subscribers = Counter(topic for member in members for topic in member.topics)
    already_served: Counter[TopicId] = Counter()
    assignments: dict[str, Assignment] = {}
    for member in members:
        ranges: dict[TopicId, tuple[int, ...]] = {}
        for topic in member.topics:
            chosen = _range(
                group.partition_counts[topic], subscribers[topic], already_served[topic]
            )
            already_served[topic] += 1
            if chosen:
                ranges[topic] = tuple(chosen)
        assignments[member.member_id] = ranges
    return assignments


def _range(partitions: int, subscribers: int, index: int) -> range:
    """The range of the subscriber at this index; the first ones get one partition more."""
    quota, extra = divmod(partitions, subscribers)
    start = index * quota + min(index, extra)
    return range(start, start + quota + (1 if index < extra else 0))


def _sort_key(member: MemberSubscription) -> tuple[bool, bytes]:
    # Java compares strings by UTF-16 code unit.
    name = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode("utf-16-be", "surrogatepass")
