"""Runs Apache Kafka's tools on a cluster, and normalizes their output for comparison."""

import re
import time
from pathlib import Path

from tests.clients.java import CLASSES, java
from tests.clients.systems import PATIENCE

from tidelog.testing import Cluster

ADMIN = {
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
QUESTIONS = frozenset(("--describe", "--list", "--verify"))
_STACK = re.compile(r"^(\s+at |Caused by: |\s*\.\.\. \d+ more|\[.*\] (ERROR|WARN) ).*\n", re.M)


class Tools:
    """Kafka's tools, connected to one cluster."""

    def __init__(self, libs: Path, cluster: Cluster) -> None:
        self._libs = libs
        self._cluster = cluster
        self.transcript: list[str] = []
        self.expected: list[str] = []
        """The expected transcript, if it is known."""

    def run(self, tool: str, *args: str, controllers: bool = False) -> str:
        """The output of the tool, and its exit status if it is not 0."""
        where = ("--bootstrap-server", self._cluster.bootstrap)
        if controllers:
            where = ("--bootstrap-controller", self._cluster.bootstrap_controllers)
        # kafka-cluster needs its subcommand before all options.
        words = (args[0], *where, *args[1:]) if tool == "kafka-cluster" else (*where, *args)
        status, said = java(self._libs).run({**CLASSES, **ADMIN}[tool], words)
        return _STACK.sub("", said) + (f"exit {status}\n" if status else "")

    def note(self, tool: str, *args: str, controllers: bool = False) -> None:
        """Run a tool, and add the command and its output to the transcript.

        A query is repeated until its output is as expected, because the tool may ask a broker that
        does not know an earlier change yet.
        """
        shown = [Path(arg).name if arg.startswith("/") else arg for arg in args]
        who = ["--bootstrap-controller"] if controllers else []
        asked = f"$ {' '.join((tool, *who, *shown))}\n"
        expected = self.expected[len(self.transcript) :][:1]
        deadline = time.monotonic() + PATIENCE
        while True:
            entry = asked + self._settled(self.run(tool, *args, controllers=controllers))
            is_question = not QUESTIONS.isdisjoint(args)
            if not is_question or expected in ([], [entry]) or time.monotonic() > deadline:
                break
        self.transcript.append(entry)

    def _settled(self, said: str) -> str:
        """The output without values that differ from run to run: ids, ports, times."""
        said = said.replace(self._cluster.bootstrap, "BOOTSTRAP")
        said = said.replace(str(self._cluster.directory), "DIRECTORY")
        said = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", said)
        said = re.sub(r"(TopicId: |Cluster ID: |ClusterId:\s+)[\w-]{22}", r"\1ID", said)
        said = re.sub(r"\d{13}", "TIME", said)
        said = re.sub(r"ms ago: \d+", "ms ago", said)
        return said if said.endswith("\n") or not said else said + "\n"
