"""The jars of Apache Kafka are found, or one sentence says what is missing."""

from pathlib import Path

import pytest

from tidelog.bench import kafka_cluster
from tidelog.bench.kafka_cluster import KafkaCluster, find_jars
from tidelog.model.user_error import UserError


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path with `java` only, and no other place where jars could be found."""
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.touch(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.delenv("KAFKA_LIBS", raising=False)
    monkeypatch.setattr(kafka_cluster, "CHECKOUT", tmp_path)
    return java


def jars_in(directory: Path) -> Path:
    directory.mkdir()
    (directory / "kafka_2.13-4.3.1.jar").touch()
    return directory


def test_the_given_directory_wins(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LIBS", str(jars_in(tmp_path / "environment")))
    assert find_jars(None) == tmp_path / "environment"
    assert find_jars(jars_in(tmp_path / "given")) == tmp_path / "given"


def test_without_a_checkout_the_directory_has_to_be_given(java: Path) -> None:
    with pytest.raises(UserError, match="needs --kafka-libs DIR"):
        find_jars(None)


def test_a_directory_without_kafka_is_refused(java: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no jar of Apache Kafka"):
        find_jars(tmp_path)


def test_java_is_needed(java: Path, tmp_path: Path) -> None:
    java.unlink()
    with pytest.raises(UserError, match="needs Java"):
        find_jars(jars_in(tmp_path / "given"))


def test_kafka_runs_from_the_jars(tmp_path: Path) -> None:
    cluster = KafkaCluster(tmp_path / "kafka", tmp_path / "jars")
    assert cluster.serve(Path("x.properties"))[-3:] == [
        f"{tmp_path}/jars/*",
        "kafka.Kafka",
        "x.properties",
    ]
