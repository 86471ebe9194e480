"""One Spark session and one cluster per process for the pipeline's tests: both start slowly."""

import itertools
import re
from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.clients.conftest import kafka_libs

from tidelog.testing import Cluster
from tidelog_pipelines.jars import ICEBERG
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import SparkSettings

__all__ = ["cluster", "kafka_libs", "spark", "topic"]

SMALL = (
    # The tests have little data, so starting tasks and compiling code would take most of the time.
    "spark.sql.shuffle.partitions=2",
    "spark.default.parallelism=2",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory=1500m",
    "spark.sql.codegen.wholeStage=false",
    "spark.sql.adaptive.enabled=false",
    # Generated code is tested in tests/pipelines/nasty, and by tests that run a job as a process.
    "spark.sql.codegen.factoryMode=NO_CODEGEN",
    # Delta's checksum files save time only if tables are large.
    "spark.databricks.delta.writeChecksumFile.enabled=false",
    "spark.databricks.delta.snapshotPartitions=1",
)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    has_iceberg = pyspark.__version__.startswith(tuple(ICEBERG))
    settings = SparkSettings(master="local[2,4]", conf=SMALL)
    session = spark_session(settings, "tests", iceberg=has_iceberg)
    yield session
    session.stop()


PROPERTIES = {
    "tidelog.replication.events.enable": "true",
    # Tests write records whose timestamps are years old. Retention must not delete these records.
    "log.retention.check.interval.ms": "86400000",
}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three brokers; a test that kills one must start it again."""
    with Cluster(brokers=3, properties=PROPERTIES, network_faults=False) as running:
        yield running


_numbers = itertools.count(1)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    name = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")
    return f"{name[:200]}-{next(_numbers)}"
