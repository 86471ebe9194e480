"""Apache Kafka's own command-line tools, run from its jars."""

import subprocess
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
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
}
# A tool lives for a second or two: the first compiler and the simplest collector start soonest.
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
QUIET = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=error",)


def run_tool(libs: Path, tool: str, *args: str, stdin: str = "") -> str:
    """Run a tool to its end and return what it printed; a failure shows all it said."""
    done = subprocess.run(
        ["java", *JVM, *QUIET, "-cp", f"{libs}/*", CLASSES[tool], *args],
        input=stdin.encode(),
        capture_output=True,
        timeout=PATIENCE,
    )
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, f"{tool} {' '.join(args)} ended with {done.returncode}:\n{said}"
    return said


class Tools:
    """The tools, all speaking to one broker."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        self.broker, self.directory = broker, directory

    def run(self, tool: str, *args: str, stdin: str = "") -> str:
        libs = self.broker.schemas.libs
        return run_tool(libs, tool, "--bootstrap-server", self.broker.bootstrap, *args, stdin=stdin)

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)
