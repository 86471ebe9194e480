"""The steps in which a log is opened, so that its recovery does not block the node."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from tidelog.model.disk import File

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
