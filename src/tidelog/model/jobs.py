"""Work that takes long and runs beside the node: fsync, unpacking of batches, decoding.

A node asks its host for a job with `Run` and receives its end as `Ran`. A job is a small value that
works on files of the `Disk` port or on bytes of its own. It holds no state of the node, so that the
node goes on meanwhile; the part that asked applies the result, if it still fits.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Steps: TypeAlias = Generator[None, None, T]
"""The steps of a job: it yields between two of them, and returns its result."""


def in_one_step(work: Callable[[], T]) -> Steps[T]:
    """A job that is never interrupted."""
    yield from ()
    return work()


class Work(Enum):
    """Kinds of work. Each has threads of its own: no kind holds up another."""

    FLUSH = "flush"
    """Waits for the disk; others wait for it before they are acknowledged."""
    COMPUTE = "compute"
    """Needs the processor, and reads a little; a request waits for it."""
    LOAD = "load"
    """May take seconds; others are told to come back later."""


class Job(Protocol[T_co]):
    @property
    def work(self) -> Work: ...

    def run(self) -> Steps[T_co]:
        """Do the work. It can be cancelled, or its process can die, between any two steps.

        A step should end within a few milliseconds of computing, since it shares the processor
        with the node. Runs in another thread: it must not touch what the node changes.
        """


class JobFailed(NamedTuple):
    """What comes in the place of a job's result."""

    error: Exception
    """OSError and `TooManyJobs` happen in operation; the host has logged any other as a bug."""


class TooManyJobs(Exception):
    """More work waits than this node takes on; it may be asked for again later."""


AnyJob: TypeAlias = Job[Any]
