"""The JVM starts with an archive of the classes that Spark loads, if there is one."""

from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidelog_pipelines import class_archive, session
from tidelog_pipelines.class_archive import SWITCH, jvm_options
from tidelog_pipelines.jars import jars
from tidelog_pipelines.java import java_home, program_of
from tidelog_pipelines.settings import SparkSettings

JARS = [Path("a.jar")]


def test_the_archive_is_mapped_into_the_memory_of_the_jvm(spark: SparkSession) -> None:
    assert spark.range(1).count() == 1
    gateway = SparkContext._gateway
    assert gateway is not None
    mapped = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert "/spark-classes-" in mapped


def test_an_archive_of_other_jars_or_another_java_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(archive: Path) -> None:
        made.append(archive)
        archive.write_bytes(b"classes")

    monkeypatch.setattr(class_archive, "_make", make)
    java = java_home(tmp_path)
    assert program_of(java).name == "java"
    first = jvm_options(tmp_path, java, JARS)
    assert first.startswith(f"-XX:SharedArchiveFile={made[0]} ")
    assert jvm_options(tmp_path, java_home(tmp_path), JARS) == first, "it is made once"
    assert jvm_options(tmp_path, java, [*JARS, Path("b.jar")]) != first
    assert len(set(made)) == 2


def test_a_java_that_cannot_make_an_archive_works_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "_make", Path.touch)
    assert jvm_options(tmp_path, java_home(tmp_path), JARS) == ""


def test_the_archive_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert jvm_options(tmp_path, java_home(tmp_path), JARS) == ""


def test_only_a_local_jvm_has_the_jars_on_its_class_path() -> None:
    chosen = {session.CLASS_PATH: "own.jar", session.JAVA_OPTIONS: "-XX:TieredStopAtLevel=4"}
    local = session._launch(SparkSettings(), chosen, iceberg=False, is_short=True)
    *ours, own = local[session.CLASS_PATH].split(":")
    assert (ours, own) == ([str(jar) for jar in jars()], "own.jar")
    assert local["spark.jars"] == ""
    assert f"{session.FOR_A_SHORT_JOB} -XX:TieredStopAtLevel=4" in local[session.JAVA_OPTIONS]
    cluster = session._launch(
        SparkSettings(master="spark://host:7077"), chosen, iceberg=False, is_short=True
    )
    assert cluster["spark.jars"] == ",".join(ours)
    assert cluster[session.CLASS_PATH] == "own.jar"
    assert "SharedArchiveFile" not in cluster[session.JAVA_OPTIONS]
