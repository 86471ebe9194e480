"""The steps in which a log is opened, so that its recovery does not block the node."""

from collections.abc import Callable, Generator
from typing import Required, TypeAlias, TypedDict, TypeVar

from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.model.disk import File
from tidelog.model.ids import Offset

T = TypeVar("T")

OpeningSteps: TypeAlias = Generator[tuple[File, ...], None, T]
"""A generator that yields between steps and returns its result.

It yields the files that the caller must sync before the next step. If there are none, the step is
only a pause.
"""


def all_at_once(steps: OpeningSteps[T]) -> T:
    """Run every step, and sync the files in between."""
    while True:
        try:
            files = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        for file in files:
            file.sync()


class OpeningOptions(TypedDict, total=False):
    """The options of `PartitionLog.opening`."""

    last_stop: Required[LastStop]
    recovery_point: Offset | None
    log_start_offset: Offset
    lower_recovery_point: Callable[[Offset], None]
    before_change: Callable[[], None]
    before_gap: Callable[[], None]
    was_cleaned: bool
