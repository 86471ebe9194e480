"""Wrong rules of coordinators: answers before the commit, and groups with two owners."""

from collections.abc import Iterable
from typing import Any

from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import ConsumerMember
from tidelog.coordination.runtime.decision import Instant
from tidelog.coordination.runtime.shard import CoordinatorShard
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _at_once() -> Iterable[Replacement]:
    def wait(self: CoordinatorShard[Any], waiting: Any, at: Instant) -> None:
        self._let_go(waiting, at)

    yield Replacement("tidelog.coordination.runtime.shard:CoordinatorShard._wait", wait)


def _any_member_epoch() -> Iterable[Replacement]:
    def check_partition(
        self: ConsumerGroup, member_id: str, epoch: int, topic_id: TopicId, partition: int
    ) -> ErrorCode:
        return ErrorCode.none

    yield Replacement(
        "tidelog.coordination.groups.consumer.group:ConsumerGroup.check_committed_partition",
        check_partition,
    )


def _before_revocation() -> Iterable[Replacement]:
    def is_released(
        group: ConsumerGroup, member: ConsumerMember, topic_id: TopicId, partition: int
    ) -> bool:
        return True

    yield Replacement("tidelog.coordination.groups.consumer.reconciling:is_released", is_released)


COORDINATORS = (
    Mutant(
        "answers-before-commit",
        ("F66", "F68"),
        "A coordinator answers when its records are appended, before they are committed.",
        _at_once,
        "an_offset_commit_is_answered_when_it_is_committed",
    ),
    Mutant(
        "any-member-epoch",
        ("F66",),
        "A former owner of a partition commits its offset with an old member epoch.",
        _any_member_epoch,
        "a_former_owner_does_not_commit",
    ),
    Mutant(
        "assigns-before-revocation",
        ("F67",),
        "A member gets a partition before its owner has confirmed that it gave it up.",
        _before_revocation,
        "a_partition_is_given_up_before_it_is_assigned",
    ),
)
