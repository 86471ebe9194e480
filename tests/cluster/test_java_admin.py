"""Kafka's Java AdminClient gets the same answers from three Tidelog nodes as from Apache Kafka.

Kafka's answers are in golden/admin_client.txt, recorded with `--system kafka --record-golden`.
"""

import difflib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.java import JVM, QUIET
from tests.clients.systems import PATIENCE
from tests.cluster.apache import STEADY, KafkaCluster

from tidelog.testing import Cluster

PROGRAM = Path(__file__).with_name("Admin.java")
GOLDEN = Path(__file__).parent / "golden" / "admin_client.txt"


@pytest.fixture
def cluster(request: pytest.FixtureRequest, kafka_libs: Path, tmp_path: Path) -> Iterator[Cluster]:
    is_kafka = request.config.getoption("--system") == "kafka"
    with (
        KafkaCluster(kafka_libs, directory=tmp_path)
        if is_kafka
        else Cluster(directory=tmp_path, properties=STEADY, network_faults=False) as cluster
    ):
        yield cluster


def test_the_admin_client(
    cluster: Cluster, kafka_libs: Path, request: pytest.FixtureRequest
) -> None:
    done = subprocess.run(
        ["java", *JVM, *QUIET, "-cp", f"{kafka_libs}/*", str(PROGRAM), cluster.bootstrap],
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if request.config.getoption("--record-golden"):
        GOLDEN.write_text(done.stdout)
    output, expected = done.stdout.splitlines(), GOLDEN.read_text().splitlines()
    assert output == expected, "\n".join(difflib.unified_diff(expected, output, "Kafka", "Tidelog"))
