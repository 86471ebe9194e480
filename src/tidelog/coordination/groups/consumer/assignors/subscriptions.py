"""The input of an assignor: members, their topics, and the target assignment that they have now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tidelog.model.ids import TopicId

Assignment: TypeAlias = Mapping[TopicId, tuple[int, ...]]
"""The partitions of a member by topic, in ascending order; a topic without partitions is absent."""


class AssignorError(Exception):
    """The assignor cannot compute an assignment."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    member_id: str
    instance_id: str | None
    topics: tuple[TopicId, ...]
    assigned: Assignment
    """The member's partitions in the previous target assignment."""


@dataclass(frozen=True, slots=True)
class GroupSubscription:
    members: Sequence[MemberSubscription]
    is_homogeneous: bool
    """Whether all members subscribe to the same topics."""
    partition_counts: Mapping[TopicId, int]


def frozen(partitions: Mapping[TopicId, set[int]]) -> Assignment:
    """The assignment without empty topics, with sorted partitions."""
    return {topic: tuple(sorted(chosen)) for topic, chosen in partitions.items() if chosen}
