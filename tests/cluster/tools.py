"""Apache Kafka's tools on a cluster, and what they say of it: as text that two runs agree on."""

import re
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.clients.java import CLASSES, JVM, QUIET

from tidelog.testing import Cluster

ADMIN = {
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
}
DRIVER = Path(__file__).with_name("Tools.java")
_STACK = re.compile(r"^(\s+at |Caused by: |\s*\.\.\. \d+ more|\[.*\] (ERROR|WARN) ).*\n", re.M)


class Tools:
    """One Java process that runs tool after tool against a cluster."""

    def __init__(self, libs: Path, cluster: Cluster) -> None:
        self._cluster = cluster
        self._java = subprocess.Popen(
            ["java", *JVM, *QUIET, "-cp", f"{libs}/*", str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.transcript: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._java.kill()
        self._java.wait()

    def run(self, tool: str, *args: str, controllers: bool = False) -> str:
        """What the tool prints, and how it ends if not well."""
        assert self._java.stdin is not None
        assert self._java.stdout is not None
        where = ("--bootstrap-server", self._cluster.bootstrap)
        if controllers:
            where = ("--bootstrap-controller", self._cluster.bootstrap_controllers)
        # One of them wants its subcommand first.
        words = (args[0], *where, *args[1:]) if tool == "kafka-cluster" else (*where, *args)
        command = ({**CLASSES, **ADMIN}[tool], *words)
        self._java.stdin.write("\t".join(command).encode() + b"\n")
        self._java.stdin.flush()
        status, size = map(int, self._java.stdout.readline().split())
        said = _STACK.sub("", self._java.stdout.read(size).decode())
        return said + (f"exit {status}\n" if status else "")

    def note(self, tool: str, *args: str, controllers: bool = False) -> str:
        """Run, and keep in the transcript what was asked and answered."""
        said = self.run(tool, *args, controllers=controllers)
        shown = [Path(arg).name if arg.startswith("/") else arg for arg in args]
        who = ["--bootstrap-controller"] if controllers else []
        self.transcript.append(f"$ {' '.join((tool, *who, *shown))}\n{self._settled(said)}")
        return said

    def _settled(self, said: str) -> str:
        """Without what differs from run to run: ids, ports, times."""
        said = said.replace(self._cluster.bootstrap, "BOOTSTRAP")
        said = said.replace(str(self._cluster.directory), "DIRECTORY")
        said = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", said)
        said = re.sub(r"(TopicId: |Cluster ID: |ClusterId:\s+)[\w-]{22}", r"\1ID", said)
        said = re.sub(r"\d{13}", "TIME", said)
        said = re.sub(r"ms ago: \d+", "ms ago", said)
        return said if said.endswith("\n") or not said else said + "\n"
