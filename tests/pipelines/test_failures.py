"""What Spark says at length becomes one sentence."""

import pytest

from tidelog_pipelines.failures import JobFailed, explain, run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("java.io.IOException: No space left on device\n\tat", "the disk is full"),
        ("Caused by: o.a.k.UnknownTopicOrPartitionException: This server", "does not exist"),
        ("Partition t-0's offset was changed from 9 to 3, some data", "from 9 to 3"),
        ("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key", "belongs to another query"),
        ("io.delta.exceptions.ConcurrentTransactionException: This", "another run of this job"),
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
