"""Apache Kafka's own command-line tools, run from its jars."""

import select
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.clients.systems import PATIENCE, Broker

CLASSES = {
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
}
# A tool runs for a second or two, so choose the compiler and collector that start fastest.
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error",)


ALONE = ("kafka-console-consumer",)
"""Tools that keep counters in static fields, so they need a new process each time."""
DRIVER = Path(__file__).with_name("Tools.java")


class Java:
    """A JVM that runs many tools, one after the other, because starting a JVM takes a second."""

    def __init__(self, libs: Path) -> None:
        self._libs = libs
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["java", *JVM, *QUIET, "-cp", f"{self._libs}/*", str(DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def run(self, main: str, args: Sequence[str], stdin: str = "") -> tuple[int, str]:
        """Run a tool; return its exit status and its output."""
        if self._process.poll() is not None:  # an earlier tool hung or ended the process
            self._process = self._started()
        assert self._process.stdin is not None
        given = stdin.encode()
        line = "\t".join((str(len(given)), main, *args)).encode() + b"\n"
        self._process.stdin.write(line + given)
        status, size = map(int, self._receive_line().split())
        return status, self._receive(size).decode()

    def _receive_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += self._receive(1)
        return line

    def _receive(self, size: int) -> bytes:
        assert self._process.stdout is not None
        received = b""
        while len(received) < size:
            ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
            more = self._process.stdout.read(size - len(received)) if ready else b""
            if not more:
                self._process.kill()
                self._process.wait()
                raise AssertionError(f"a tool did not end; so far it said: {received.decode()}")
            received += more
        return received


java = cache(Java)
"""The JVM for a directory of jars. It starts on first use, and ends when the tests end."""


def run_tool(libs: Path, tool: str, *args: str, stdin: str = "") -> str:
    """Run a tool and return its output; if the tool fails, the assertion shows the output."""
    run = _run_alone if tool in ALONE else _run_shared
    status, said = run(libs, CLASSES[tool], args, stdin)
    assert status == 0, f"{tool} {' '.join(args)} ended with {status}:\n{said}"
    return said


def _run_shared(libs: Path, main: str, args: Sequence[str], stdin: str) -> tuple[int, str]:
    return java(libs).run(main, args, stdin)


def _run_alone(libs: Path, main: str, args: Sequence[str], stdin: str) -> tuple[int, str]:
    done = subprocess.run(
        ["java", *JVM, *QUIET, "-cp", f"{libs}/*", main, *args],
        input=stdin.encode(),
        capture_output=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


class Tools:
    """Kafka's tools, connected to one broker."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker, self.directory = broker, directory

    def run(self, tool: str, *args: str, stdin: str = "") -> str:
        libs = self.broker.schemas.libs
        return run_tool(libs, tool, "--bootstrap-server", self.broker.bootstrap, *args, stdin=stdin)

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)
