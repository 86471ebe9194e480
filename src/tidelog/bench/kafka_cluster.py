"""Apache Kafka from its jars, with the options of the JVM in Kafka's own start script."""

import os
import shutil
import subprocess
from pathlib import Path

import tidelog
from tidelog.bench.measured_cluster import MeasuredCluster
from tidelog.model.user_error import UserError

JVM_OPTIONS = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
CHECKOUT = Path(tidelog.__file__).parents[2]


class KafkaCluster(MeasuredCluster):
    """Apache Kafka in KRaft mode."""

    name = "kafka"

    def __init__(self, directory: Path, jars: Path) -> None:
        super().__init__(directory)
        self._jars = jars

    def format(self, config: Path, cluster_id: str) -> list[str]:
        command = ["java", "-cp", f"{self._jars}/*", "kafka.tools.StorageTool", "format"]
        return [*command, "--cluster-id", cluster_id, "--config", str(config)]

    def serve(self, config: Path) -> list[str]:
        return ["java", *JVM_OPTIONS, "-cp", f"{self._jars}/*", "kafka.Kafka", str(config)]


def find_jars(given: Path | None) -> Path:
    """The directory of Kafka's jars: the given one, $KAFKA_LIBS, or that of tools/kafka-jars."""
    if shutil.which("java") is None:
        raise UserError("Apache Kafka needs Java 17 or later, and there is no `java` on the path.")
    if given is None and "KAFKA_LIBS" in os.environ:
        given = Path(os.environ["KAFKA_LIBS"])
    fetch = CHECKOUT / "tools/kafka-jars"
    if given is None and fetch.exists():
        done = subprocess.run([fetch], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise UserError("tools/kafka-jars could not fetch Apache Kafka; its error is above.")
        given = Path(done.stdout.strip())
    if given is None:
        raise UserError("--against kafka needs --kafka-libs DIR, the directory of Kafka's jars.")
    if not any(given.glob("kafka_*.jar")):
        raise UserError(f"{given} has no jar of Apache Kafka (kafka_2.13-VERSION.jar).")
    return given
