"""Two locks of an output directory: one for the job that claims it, one for table changes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import has_scheme

LOCK = ".tidelog.lock"
"""The name begins with a dot, because Spark ignores files with such names."""
TURN = ".tidelog.turn"
_IN_THIS_PROCESS = RLock()
"""A lock between the threads of this process, for file systems without file locks."""


@contextmanager
def claimed(directory: str) -> Iterator[None]:
    """Hold a local directory, and create it if needed. Raises if another job holds it."""
    if has_scheme(directory):
        yield  # there are no locks on other file systems, but Delta detects a second writer
        return
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        file = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise JobFailed(f"--out {directory} cannot be written: {error.strerror}.") from None
    try:
        _lock(file, directory)
        yield
    finally:
        os.close(file)


@contextmanager
def turn(directory: str) -> Iterator[None]:
    """Wait until no other job changes tables in a local directory, then keep other jobs out."""
    if has_scheme(directory) or not os.path.isdir(directory):
        # On other file systems, Delta detects conflicts with the commits of other processes.
        with _IN_THIS_PROCESS:
            yield
        return
    file = os.open(f"{directory}/{TURN}", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def require_directory(out: str) -> None:
    """Raise if a local --out does not exist."""
    if not has_scheme(out) and not os.path.isdir(out):
        raise JobFailed(f"--out {out} does not exist.")


def _lock(file: int, directory: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(file, 20, 0).decode(errors="replace").strip()
        raise JobFailed(
            f"another job (process {holder}) writes to {directory}; one of the two must end."
        ) from None
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
