"""A cluster whose nodes have clocks that a test can set, without changing the machine's clock.

As a program, `settable_clock.py FILE --config ...` runs a node. FILE contains an offset in
nanoseconds (eight bytes), which is added whenever the node reads the machine's clock.
"""

import subprocess
import sys
import time
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct

from tidelog.clusters.node_process import PROGRAM
from tidelog.model.ids import NodeId
from tidelog.runtime import clock
from tidelog.runtime.server import main
from tidelog.testing import Cluster, NodeProcess

_NANOSECONDS = Struct("=q")


class _SettableNode(NodeProcess):
    @property
    def clock_file(self) -> Path:
        return self.log.with_suffix(".clock")

    def spawn(self, argv: list[str], *shared: int) -> subprocess.Popen[bytes]:
        if not self.clock_file.exists():
            self.set_clock(0)
        own = [sys.executable, __file__, str(self.clock_file)]
        return super().spawn([*own, *argv[len(PROGRAM) :]], *shared)

    def set_clock(self, seconds: float) -> None:
        with self.clock_file.open("wb" if not self.clock_file.exists() else "r+b") as file:
            file.write(_NANOSECONDS.pack(int(seconds * 1e9)))


class SettableCluster(Cluster):
    def new_node(self, node: NodeId) -> NodeProcess:
        return _SettableNode(node, self.layout.config(node), self.directory / f"{node}.log")

    def set_clock(self, node: NodeId, seconds: float) -> None:
        """Set a node's clock this many seconds ahead of the true time, or behind it if negative."""
        process = self.nodes[node]
        assert isinstance(process, _SettableNode)
        process.set_clock(seconds)


def _run(file: str, arguments: list[str]) -> int:
    with Path(file).open("rb") as opened:
        held = mmap(opened.fileno(), _NANOSECONDS.size, access=ACCESS_READ)

    def set_time_ns() -> int:
        return time.time_ns() + int(_NANOSECONDS.unpack(held[:])[0])

    clock.time_ns = set_time_ns  # type: ignore[attr-defined]
    return main(arguments)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2:]))
