"""Runs a tool of Kafka and the command of Tidelog on one cluster, and compares their output."""

import difflib
import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.clients.java import CLASSES, java
from tests.cluster.tools import ADMIN

from tidelog.cli.main import run
from tidelog.testing import Cluster

COMMANDS = {
    "kafka-consumer-groups": ("groups",),
    "kafka-consumer-perf-test": ("perf", "consume"),
    "kafka-delete-records": ("delete-records",),
    "kafka-features": ("features",),
    "kafka-get-offsets": ("get-offsets",),
    "kafka-producer-perf-test": ("perf", "produce"),
    "kafka-leader-election": ("elect",),
    "kafka-log-dirs": ("log-dirs",),
    "kafka-reassign-partitions": ("reassign",),
    "kafka-transactions": ("transactions",),
}
THEIRS, OURS = "ofkafka", "oftides"
"""Names of equal length. A changing command gets its own topics and groups from each tool."""

ATTEMPTS = 10

_TRACE = re.compile(
    r"^(?:Caused by: |\s*Suppressed: )?[\w.$]+(?:Exception|Error)\b.*\n(?=\s+at |\n|\Z)"
    r"|^\s+at .*\n|^\s*\.\.\. \d+ more\n|^Caused by: .*\n",
    re.M,
)
_WARNING = re.compile(r"^tidelog: New offset .*\n", re.M)
_PREFIX = re.compile(r"^(tidelog: |Error: |Error occurred: )", re.M)
"""The prefixes of errors, which differ."""


class SideBySide:
    def __init__(self, libs: Path, cluster: Cluster, directory: Path) -> None:
        self._libs = libs
        self._cluster = cluster
        self._directory = directory

    def kafka(self, tool: str, *args: str) -> tuple[int, str]:
        """The status and the output of Kafka's tool, without stack traces."""
        words = ("--bootstrap-server", self._cluster.bootstrap, *args)
        status, said = java(self._libs).run({**CLASSES, **ADMIN}[tool], words)
        return status, _plain(_TRACE.sub("", said))

    def tidelog(self, tool: str, *args: str) -> tuple[int, str]:
        """The status and the output of Tidelog's command, with both streams together."""
        server = ("--bootstrap-server", self._cluster.bootstrap)
        return run_command(*COMMANDS[tool], *server, *args)

    def same(
        self,
        tool: str,
        *args: str,
        any_order: bool = False,
        between: Callable[[], object] = lambda: None,
    ) -> str:
        """Run both, and check that they print the same and end with the same status.

        If an argument contains THEIRS, Tidelog's command gets OURS instead. A query is repeated
        until both agree, because the cluster may change between the two. `between` waits until the
        cluster has carried out the first command.
        """
        for _ in range(ATTEMPTS):
            status, theirs = self.kafka(tool, *args)
            between()
            ours_args = [arg.replace(THEIRS, OURS) for arg in args]
            our_status, ours = self.tidelog(tool, *ours_args)
            ours = _plain(_WARNING.sub("", ours.replace(OURS, THEIRS)))
            if any_order:
                theirs, ours = ("\n".join(sorted(one.split("\n"))) for one in (theirs, ours))
            if ours == theirs or THEIRS in " ".join(args):
                break
        difference = difflib.unified_diff(theirs.split("\n"), ours.split("\n"), "Kafka", "Tidelog")
        assert ours == theirs, "\n".join((" ".join(args), *difference))
        assert our_status == status, f"{args}: {our_status} instead of {status}"
        return ours

    def file(self, name: str, text: str) -> str:
        """The path of a file for Kafka's tool; the other tool's file has its own names."""
        for who in (THEIRS, OURS):
            path = self._directory / f"{who}-{name}"
            path.write_text(text.replace(THEIRS, who))
        return str(self._directory / f"{THEIRS}-{name}")


def _plain(said: str) -> str:
    return _PREFIX.sub("", said).rstrip("\n")


def run_command(*arguments: str) -> tuple[int, str]:
    """Run a command line of Tidelog in this process."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = run(list(arguments))
    return status, said.getvalue()
