"""A coordinator that does not wait for the high watermark."""

from collections.abc import Iterable
from typing import Any

from tidelog.coordination.runtime.decision import Instant
from tidelog.coordination.runtime.shard import CoordinatorShard
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _at_once() -> Iterable[Replacement]:
    def wait(self: CoordinatorShard[Any], waiting: Any, at: Instant) -> None:
        self._let_go(waiting, at)

    yield Replacement("tidelog.coordination.runtime.shard:CoordinatorShard._wait", wait)


COORDINATORS = (
    Mutant(
        "answers-before-commit",
        ("F66", "F68"),
        "A coordinator answers when its records are appended, before they are committed.",
        _at_once,
        "an_offset_commit_is_answered_when_it_is_committed",
    ),
)
