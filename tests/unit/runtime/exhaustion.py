"""Uses up all descriptors of this process."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def no_descriptor_left() -> Iterator[list[int]]:
    """Take every free descriptor; yield them, so that a test can close some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest_descriptor() + 1, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield taken
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in taken:
            os.close(number)


def highest_descriptor() -> int:
    return max(map(int, os.listdir("/proc/self/fd")))
