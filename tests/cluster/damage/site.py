"""The data directory of a stopped node, and the files in it that can be damaged."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tidelog.sim.faults.damage import METADATA, names_of

T = TypeVar("T")

LOCK = ".lock"
"""The name of the lock file, which is never damaged because its content is never read."""


class NothingToDamage(Exception):
    """The directory has no file of the requested kind."""


@dataclass(frozen=True)
class Harm:
    """The damage that was done to a node's files."""

    what: str
    paths: tuple[str, ...]
    """The damaged files, relative to the data directory; a report must name one of them."""
    must_be_reported: bool = True
    may_refuse: bool = False
    """Whether the node may refuse to start. If it refuses, its error message must name the file."""

    @property
    def names(self) -> set[str]:
        """Names of the damaged files; the report must mention at least one of them."""
        return names_of(self.paths)

    def touches(self, partition: str) -> bool:
        return any(Path(path).parts[:1] == (partition,) for path in self.paths)


class Site:
    def __init__(self, data: Path, rng: random.Random, partitions: Sequence[str]) -> None:
        self.data = data
        self.rng = rng
        self._partitions = [name for name in partitions if (data / name).is_dir()]

    # -- finding files -----------------------------------------------------------------------------

    def partition(self) -> Path:
        """The directory of a random partition, but not of the metadata log."""
        return self.data / self.one_of(self._partitions)

    def partitions(self) -> list[Path]:
        return [self.data / name for name in self._partitions]

    @property
    def metadata(self) -> Path:
        return self.data / METADATA

    def log(self, *, least: int = 1) -> Path:
        """The .log file of a random segment with at least this many bytes."""
        logs = [one for one in self.logs(self.partition()) if one.stat().st_size >= least]
        return self.one_of(logs)

    def logs(self, partition: Path) -> list[Path]:
        return sorted(one for one in partition.glob("*.log") if one.is_file())

    def file_of(self, *patterns: str, least: int = 0) -> Path:
        """A random file that matches one of the patterns, in a random partition."""
        partition = self.partition()
        found = [path for pattern in patterns for path in sorted(partition.glob(pattern))]
        return self.one_of([one for one in found if one.stat().st_size >= least])

    def metadata_file(self, pattern: str, least: int = 0) -> Path:
        found = [one for one in sorted(self.metadata.glob(pattern)) if one.is_file()]
        return self.one_of([one for one in found if one.stat().st_size >= least])

    def any_file(self, *, least: int = 0) -> Path:
        """A random file of a partition, of the metadata log, or of the directory's root."""
        place = self.rng.randrange(4)
        if place == 0:
            among = [one for one in sorted(self.data.iterdir()) if one.name != LOCK]
        else:
            among = sorted((self.metadata if place == 1 else self.partition()).iterdir())
        return self.one_of([one for one in among if one.is_file() and one.stat().st_size >= least])

    def one_of(self, some: Sequence[T]) -> T:
        if not some:
            raise NothingToDamage
        return self.rng.choice(some)

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.data))

    # -- damaging files ----------------------------------------------------------------------------

    def flip(self, path: Path, bits: int, start: int = 0, end: int | None = None) -> list[int]:
        """Flip this many random bits between two positions; return the positions."""
        content = bytearray(path.read_bytes())
        stop = len(content) if end is None else end
        if stop <= start:
            raise NothingToDamage
        places = sorted(self.rng.randrange(start, stop) for _ in range(bits))
        for place in places:
            content[place] ^= 1 << self.rng.randrange(8)
        path.write_bytes(content)
        return places

    def cut(self, path: Path) -> int:
        """Cut a file at a random position; return its new size."""
        size = path.stat().st_size
        if not size:
            raise NothingToDamage
        kept = self.rng.randrange(size)
        with path.open("r+b") as file:
            file.truncate(kept)
        return kept

    def garbage(self, most: int = 200) -> bytes:
        return self.rng.randbytes(1 + self.rng.randrange(most))
