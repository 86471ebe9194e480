"""The options of the Python API are the commands' settings. Each error is one sentence."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from tidelog_pipelines import api
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.audit import AuditSettings
from tidelog_pipelines.jobs.ingest import IngestSettings
from tidelog_pipelines.jobs.replay import DECODER
from tidelog_pipelines.options import sentences, settings_of

DOCS = Path(__file__).parents[2] / "docs"
ALL = [one.name for one in fields(IngestSettings)]


def ingest(**options: Any) -> IngestSettings:
    return settings_of(IngestSettings, {"out": "lake", **options}, ALL)


def test_values_of_python_become_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", "environment:1")
    found = ingest(
        topics=["a", "b"],
        out=Path("lake"),
        kafka={"security.protocol": "SSL"},
        max_depth=7,
        message=None,
    )
    assert (found.topics, found.out) == ("a,b", "lake")
    assert (found.kafka, found.max_depth) == (("security.protocol=SSL",), 7)
    assert (found.message, found.bootstrap_server) == ("", "environment:1")
    servers = ingest(topics="a", bootstrap_server=["x:1", "y:1"]).bootstrap_server
    assert servers == "x:1,y:1"


def test_several_values_of_one_option() -> None:
    names = [one.name for one in fields(AuditSettings)]
    options = {
        "ledger": Path("one"),
        "replica": {1: [Path("a"), "b"], 2: Path("c")},
        "topic": ["t", "u"],
    }
    found = settings_of(AuditSettings, options, names)
    assert (found.ledger, found.replica) == (("one",), ("1=a,b", "2=c"))
    assert found.topic == ("t", "u")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "give either topics or pattern."),
        ({"topics": "t", "out": None}, "an option is missing: out."),
        ({"topics": "t", "max_depth": "7"}, "max_depth takes int, not '7'."),
        ({"topics": "t", "max_depth": True}, "max_depth takes int, not True."),
        ({"topics": ["t", 1]}, "topics takes str, not ['t', 1]."),
        ({"topics": "t", "kafka": 5}, "kafka takes str, not [5]."),
        (
            {"topics": "t", "value_format": "xml"},
            "value_format is one of json, avro, protobuf, string, raw, not 'xml'.",
        ),
        (
            {"topics": "t", "value_format": "avro"},
            "value_format avro needs a schema or a schema_registry.",
        ),
        ({"topics": "t", "every": "soon"}, "every: 'soon' is not a time such as '10 seconds'."),
    ],
)
def test_a_bad_option_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JobFailed) as failed:
        ingest(**options)
    assert str(failed.value) == sentence


def test_an_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(JobFailed, match=r"there is no option 'topic'; there are .*topics, pattern"):
        settings_of(IngestSettings, {"topic": "t"}, api.OF_INGEST)


def test_an_error_of_spark_is_one_sentence_with_the_details_behind_it() -> None:
    error = AnalysisException("[COLUMN_NOT_FOUND] no column x;\nplan\nplan")
    with pytest.raises(JobFailed) as failed, sentences():
        raise error
    assert str(failed.value) == "Spark reports: [COLUMN_NOT_FOUND] no column x;"
    assert failed.value.__cause__ is error
    with pytest.raises(ZeroDivisionError), sentences():
        raise ZeroDivisionError  # an error that is a bug is not changed


class Broken:
    """A session, or a part of a session, that fails whenever it is used."""

    def __getattr__(self, name: str) -> Any:
        raise AnalysisException("[BROKEN] no Spark;\nplan")


def test_errors_of_spark_before_a_job_starts_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(schema: StructType) -> str:
        raise AnalysisException("[BROKEN] no Spark;\nplan")

    monkeypatch.setattr(StructType, "toDDL", broken)
    session: Any = Broken()
    calls: list[Callable[[], object]] = [
        lambda: ingest(topics="t", schema=StructType()),
        lambda: api.register(session),
        lambda: api.health(session),
        lambda: api.ingest(session, topics="t", out="lake"),
    ]
    for call in calls:
        with pytest.raises(JobFailed, match=r"^Spark reports: \[BROKEN\] no Spark;$"):
            call()


def test_every_setting_of_a_command_is_an_option_with_its_meaning() -> None:
    shown = inspect.signature(api.start_ingest).parameters
    of_the_session = {"master", "remote", "conf", "driver_memory", "log_level"}
    assert {*ALL} - {*shown} == {*of_the_session, "once"}
    assert shown["out"].default is inspect.Parameter.empty
    assert shown["every"].default == "2 seconds"
    assert "value_format: how values are decoded" in (api.start_ingest.__doc__ or "")
    # A run that reads only the present records has no option for the interval between
    # micro-batches.
    assert {*shown} - {*inspect.signature(api.ingest).parameters} == {"every"}
    assert set(inspect.signature(api.decode).parameters) == {"records", *DECODER}


def test_the_page_explains_every_public_name() -> None:
    page = (DOCS / "pipeline-api.md").read_text()
    assert [
        name for name in api.__all__ if f"`{name}" not in page and f"api.{name}" not in page
    ] == []


def test_an_import_starts_no_spark_and_prints_nothing() -> None:
    program = (
        "import tidelog_pipelines.api, pyspark\n"
        "assert pyspark.SparkContext._active_spark_context is None\n"
        "assert pyspark.SparkContext._gateway is None\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
