"""Long work that runs off the node's thread: fsync, decompression, decoding.

A node requests a job with `Run` and receives `Ran` when the job ends. A job is a small value that
works on files of the `Disk` port or on its own bytes. Invariant: a job holds no state of the node,
so the node can keep running while the job runs. The part that started the job uses the result only
if the result is still valid.
"""

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Steps: TypeAlias = Generator[None, None, T]
"""The steps of a job: a generator that yields between steps and returns the job's result."""


def in_one_step(work: Callable[[], T]) -> Steps[T]:
    """Run work as a job that is never interrupted."""
    yield from ()
    return work()


class Work(Enum):
    """Kinds of work. Each kind has its own threads, so that no kind delays another."""

    FLUSH = "flush"
    """Work that waits for the disk. Acknowledgements depend on this work."""
    READ = "read"
    """Reads of bytes that are not in the page cache. A request waits for them."""
    COMPUTE = "compute"
    """Work that needs the processor and reads little. A request waits for its result."""
    LOAD = "load"
    """Work that may take seconds. Requests that depend on it get a retriable error."""
    CLEAN = "clean"
    """Compaction. No request waits for it."""


class Job(Protocol[T_co]):
    @property
    def work(self) -> Work: ...

    def run(self) -> Steps[T_co]:
        """Do the work. The job can be cancelled, or its process can die, between any two steps.

        A step should compute for a few milliseconds at most, because it shares the processor with
        the node. The job runs in another thread and must not touch state that the node changes.
        """


class JobFailed(NamedTuple):
    """Delivered in place of a job's result."""

    error: Exception
    """OSError and `TooManyJobs` occur in operation; the host has logged any other error as a bug.
    """


class TooManyJobs(Exception):
    """The node's job queue is full; the work may be retried later."""


AnyJob: TypeAlias = Job[Any]
