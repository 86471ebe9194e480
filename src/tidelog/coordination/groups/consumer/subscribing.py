"""What a group subscribes to after members have changed, before the change is replayed."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tidelog.coordination.groups.consumer.group import ConsumerGroup, ResolvedRegex, add
from tidelog.coordination.groups.consumer.member import ConsumerMember
from tidelog.coordination.groups.consumer.topics import ClusterTopics
from tidelog.model.ids import TopicId


class Subscription(NamedTuple):
    names: Counter[str]
    """The number of members that subscribe to each topic by its name."""
    regexes: Counter[str]
    resolved: dict[str, ResolvedRegex]
    """The resolved regular expressions that members still use."""

    def topics(self) -> frozenset[str]:
        return frozenset(self.names).union(*(found.topics for found in self.resolved.values()))

    def is_homogeneous(self, member_count: int) -> bool:
        """Whether all members subscribe to the same topics."""
        if not self.regexes:
            return all(count == member_count for count in self.names.values())
        if next(iter(self.regexes.values())) != member_count:
            return False
        matches = Counter(topic for found in self.resolved.values() for topic in found.topics)
        return not self.names and all(count == 1 for count in matches.values())


def subscription_after(
    group: ConsumerGroup,
    gone: Iterable[ConsumerMember],
    new: Iterable[ConsumerMember] = (),
) -> Subscription:
    """The subscription of the group after the first members are replaced by the second ones."""
    names, regexes = Counter(group.names), Counter(group.regexes)
    for members, by in ((gone, -1), (new, 1)):
        for member in members:
            add(names, member.topic_names, by)
            add(regexes, () if member.regex is None else (member.regex,), by)
    resolved = {regex: found for regex, found in group.resolved.items() if regex in regexes}
    return Subscription(names, regexes, resolved)


def topic_ids(names: Collection[str], topics: ClusterTopics) -> tuple[TopicId, ...]:
    """The ids of the topics that exist, in the order of their names."""
    found = (topics.named(name) for name in sorted(names))
    return tuple(facts.topic_id for facts in found if facts is not None)
