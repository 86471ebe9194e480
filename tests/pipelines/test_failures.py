"""Long error messages of Spark become one sentence."""

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, StreamingQueryException

from tidelog_pipelines.failures import JobFailed, explain, run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("java.io.IOException: No space left on device\n\tat", "the disk is full"),
        ("Caused by: o.a.k.UnknownTopicOrPartitionException: This server", "does not exist"),
        ("Partition t-0's offset was changed from 9 to 3, some data", "from 9 to 3"),
        ("Reason: Partitions Set(t-b-0) have been deleted. SQLSTATE", "--on-topic-deleted skip"),
        ("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key", "belongs to another query"),
        ("io.delta.exceptions.ConcurrentTransactionException: This", "another run of this job"),
        ("...failures.JobFailed: no broker answers: offset 3\n", "no broker answers: offset 3"),
        ("TimeoutException: Timed out waiting for a node assignment.", "no broker answers"),
    ],
)
def test_known_failures_are_explained(words: str, sentence: str) -> None:
    assert sentence in (explain(f"Query [id = 1] terminated\n{words}") or "")


def test_an_unknown_failure_keeps_its_traceback() -> None:
    def job() -> int:
        raise ValueError("never seen before")

    assert explain("never seen before") is None
    with pytest.raises(ValueError, match="never seen before"):
        run(job)


def test_a_job_that_fails_says_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def job() -> int:
        raise JobFailed("the tide is out.")

    assert run(job) == 1
    assert capsys.readouterr().err == "tidelog: the tide is out.\n"


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (KeyboardInterrupt(), 130, "tidelog: interrupted.\n"),
        (Py4JNetworkError("Answer from Java side is empty"), 1, "tidelog: Spark's JVM has ended."),
        (ConnectionRefusedError(111, "Connection refused"), 1, "tidelog: Spark's JVM has ended."),
    ],
)
def test_a_job_that_is_interrupted_or_loses_its_jvm_says_so(
    error: BaseException, status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def job() -> int:
        raise error

    assert run(job) == status
    said = capsys.readouterr().err
    assert said.startswith(sentence)
    assert said.count("\n") == 1


IN_A_TASK = """An error occurred while calling o70.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0
Caused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.
== SQL (line 1, position 8) ==
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] No t.\n== SQL =="), "[TABLE_OR_VIEW_NOT_F"),
        (
            StreamingQueryException(
                "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Odd.\n==="
            ),
            "Odd.",
        ),
        (RuntimeError(IN_A_TASK), "[DIVIDE_BY_ZERO] Division by zero."),
    ],
)
def test_what_spark_names_itself_is_said_in_its_words(
    error: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def job() -> int:
        raise error

    assert run(job) == 1
    line, end = capsys.readouterr().err.split("\n")
    assert line.startswith(f"tidelog: Spark reports: {said}")
    assert not end


def test_a_failure_of_our_own_code_in_a_query_keeps_its_traceback() -> None:
    def job() -> int:
        raise StreamingQueryException("[STREAM_FAILED] ...\nTraceback (most recent call last):")

    with pytest.raises(StreamingQueryException):
        run(job)
