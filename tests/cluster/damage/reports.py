"""A node's log lines about damage, and whether the node can detect a given damage at all.

`tidelog.sim.faults.damage` compares the content of files. This module also handles directories
and links.
"""

import re
from pathlib import Path

from tests.cluster.damage.site import Harm

from tidelog.sim.faults.damage import METADATA, is_visible, recovery_points
from tidelog.testing import NodeProcess

BUGS = ("Traceback (most recent call last)", "bug in Tidelog", "AssertionError")
UNCLEAN = re.compile(r"(\S+-\d+): leader \d+ was elected uncleanly")
_REPORT = re.compile(r" (WARNING|ERROR|CRITICAL) ")
_OTHER = re.compile(r" (INFO|DEBUG) ")


class NodeLog:
    """The lines that a node has logged since this object was created."""

    def __init__(self, process: NodeProcess) -> None:
        self._path = process.log
        self._start = process.log.stat().st_size if process.log.exists() else 0

    def text(self) -> str:
        with self._path.open("rb") as file:
            file.seek(self._start)
            return file.read().decode(errors="replace")

    def reports(self) -> list[str]:
        """Warnings, errors, and lines without a level, such as the last message of a dying node."""
        return [
            line
            for line in self.text().splitlines()
            if _REPORT.search(line) or not _OTHER.search(line)
        ]

    def bugs(self) -> list[str]:
        return [line for line in self.text().splitlines() if any(bug in line for bug in BUGS)]

    def unclean_elections(self) -> set[str]:
        """The partitions for which the node logged an unclean election."""
        return set(UNCLEAN.findall(self.text()))

    def mentions(self, names: set[str]) -> bool:
        return any(name in line for line in self.reports() for name in names)


def can_be_known(harm: Harm, before: Path, after: Path, *, was_clean: bool) -> bool:
    """Whether a node can detect the damage, given copies of the directory before and after it."""
    if not harm.must_be_reported:
        return False
    files = contents(before)
    points = recovery_points(files)
    for path in harm.paths:
        if (before / path).is_dir() or (after / path).is_dir() or (after / path).is_symlink():
            directory = Path(path).parts[0]
            return was_clean or points.get(directory, 0) > 0 or directory == METADATA
    return is_visible(harm.paths, files, contents(after), was_clean=was_clean)


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
