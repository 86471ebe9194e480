"""Distinguishes failures that one topic causes from failures of the whole job."""

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidelog_pipelines.failures import UNREACHABLE, cause, sentence_for
from tidelog_pipelines.jobs.isolation import STOPPED

OF_THE_WHOLE_JOB = (UNREACHABLE, "the disk is full", "another run of this job")
"""If the sentence of a failure begins with one of these texts, the whole job has failed."""


def topics_own(error: Exception) -> str | None:
    """The sentence for an error that one topic causes; None if the whole job has failed."""
    words = str(error)
    if isinstance(error, Py4JNetworkError | OSError) or STOPPED.search(words):
        return None
    sentence = sentence_for(error)
    if sentence is not None:
        return None if sentence.startswith(OF_THE_WHOLE_JOB) else sentence
    if isinstance(error, Py4JError | PySparkException):
        return f"Spark reports: {cause(words)}"
    return f"this is a bug in Tidelog: {type(error).__name__}: {words.partition(chr(10))[0]}"
