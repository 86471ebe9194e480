"""The search for records that make a batch fail, the lock of a directory, and types of columns."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from tidelog_pipelines.failures import JobFailed, cause
from tidelog_pipelines.jobs.isolation import Culprit, culprits, may_be_a_record, without
from tidelog_pipelines.session import driver_megabytes
from tidelog_pipelines.sinks.claims import claimed
from tidelog_pipelines.sinks.columns import difference
from tidelog_pipelines.sources.checkpoint import Span


@given(st.sets(st.integers(0, 199)), st.integers(0, 100), st.integers(1, 100))
def test_exactly_the_bad_records_are_found(bad: set[int], start: int, size: int) -> None:
    spans = [Span(0, start, start + size), Span(1, 0, 5)]

    def complaint(span: Span) -> str | None:
        reads = range(span.start, span.end) if span.partition == 0 else ()
        return "bad" if bad & set(reads) else None

    found = culprits(spans, complaint)
    expected = sorted(bad & set(range(start, start + size)))
    assert found == [Culprit(0, offset, "bad") for offset in expected]
    kept = {(p, at) for p, first, end in without(spans, found) for at in range(first, end)}
    everything = {(p, at) for p, first, end in spans for at in range(first, end)}
    assert kept == everything - {(0, offset) for offset in expected}


@pytest.mark.parametrize(
    ("error", "may_be"),
    [
        (PySparkException("java.lang.ArithmeticException: long overflow"), True),
        (PySparkException("TimeoutException: Timed out waiting for a node assignment."), False),
        (PySparkException("java.io.IOException: No space left on device"), False),
        (PySparkException("Job 3 cancelled because SparkContext was shut down"), False),
        (Py4JNetworkError("Answer from Java side is empty"), False),
        (JobFailed("the tide is out"), False),
    ],
)
def test_only_a_failure_that_may_be_due_to_a_record_is_searched(
    error: Exception, may_be: bool
) -> None:
    assert may_be_a_record(error) is may_be


def test_the_innermost_cause_is_named() -> None:
    words = "Job aborted\n\tat x\nCaused by: a.B: outer\n\tat y\nCaused by: c.D: inner\n\tat z"
    assert cause(words) == "c.D: inner"
    assert cause("one line\ntwo") == "one line"


def test_a_directory_has_one_job_at_a_time(tmp_path: Path) -> None:
    with claimed(str(tmp_path / "new")):
        with pytest.raises(JobFailed, match=r"another job \(process \d+\) writes to"):
            claimed(str(tmp_path / "new")).__enter__()
        with claimed("s3a://bucket/x"):
            pass
    with claimed(str(tmp_path / "new")):
        pass


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def test_a_column_of_another_type_is_found_inside() -> None:
    old = struct(a=ArrayType(struct(b=LongType())), c=MapType(StringType(), LongType()))
    assert difference("value", old, old) is None
    assert difference("value", old, struct(d=LongType())) is None
    other = struct(a=ArrayType(struct(b=StringType())))
    assert difference("value", old, other) == ("value.a.element.b is bigint there, and string here")


def test_the_driver_has_between_one_and_eight_gigabytes() -> None:
    assert 1_024 <= driver_megabytes() <= 8_192
