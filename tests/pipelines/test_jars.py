"""Spark's jars are fetched once, or taken from a directory that the user names."""

import sys
from pathlib import Path

import pyspark
import pytest

from tidelog_pipelines import jars
from tidelog_pipelines.failures import JobFailed


def test_a_directory_that_the_user_names_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.jar", "a.jar", "readme.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("TIDELOG_SPARK_JARS", str(tmp_path))
    assert jars.jars() == [tmp_path / "a.jar", tmp_path / "b.jar"]


def test_what_cannot_be_fetched_is_said_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(JobFailed, match="the first use needs a Maven repository once"):
        jars.jars()
    kept = {path.suffix for path in (tmp_path / "tidelog").iterdir()}
    assert kept == {".lock", ".log"}


def test_the_session_has_them_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    found = jars.jars()
    assert {jar.name.partition("-")[0] for jar in found} >= {
        "io.delta_delta",
        "org.apache.kafka_kafka",
    }
    monkeypatch.setattr(sys, "executable", "/bin/false")  # a second fetch would fail
    assert jars.jars() == found


def test_the_jars_are_of_the_installed_line() -> None:
    for line in jars.LINES:
        of_spark = [one for one in jars.coordinates(f"{line}.9") if one.startswith("org.apache.")]
        assert [one.rpartition(":")[2].rpartition(".")[0] for one in of_spark] == [line] * 2
    assert any(pyspark.__version__.startswith(line) for line in jars.LINES)
    with pytest.raises(
        JobFailed, match=r"^PySpark 3\.5\.1 is installed, and the pipeline works with"
    ):
        jars.coordinates("3.5.1")
