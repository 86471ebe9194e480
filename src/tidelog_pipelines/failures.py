"""Error messages of a job: one sentence for the user, never a Java stack trace."""

import logging
import re
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

INTERRUPTED = 130
"""The exit status if Ctrl-C or SIGTERM interrupts a job.

A job that handles the signal and stops its queries properly does not return this status.
"""
UNREACHABLE = "no broker answers"
REGISTRY_UNREACHABLE = "the schema registry does not answer"
TRANSACTION_LOST = "a transaction was interrupted"
TEMPORARY = (UNREACHABLE, REGISTRY_UNREACHABLE, TRANSACTION_LOST)
"""If the sentence of an error begins with one of these texts, the error may be temporary."""


class JobFailed(Exception):
    """Ends the job without a traceback. The message is one sentence for the user."""


class Sign(NamedTuple):
    """A pattern in Spark's error text, and the sentence for the user."""

    pattern: re.Pattern[str]
    meaning: str


SIGNS = (
    # Errors of our own code inside a query are wrapped in Spark's error text.
    Sign(
        re.compile(
            r"(?:JobFailed|TopicReplaced|RecordsExpired|TableMismatch|RegistryUnreachable|"
            r"RegistryRefused|WriteFailed): ([^\n]+)"
        ),
        "{found}",
    ),
    Sign(
        re.compile(r"No space left on device|Disk quota exceeded"),
        "the disk is full (Spark reports: {found}); free some space and start again: complete "
        "batches are kept, the rest is written again.",
    ),
    Sign(
        re.compile(r"UnknownTopicOrPartitionException[^\n]*"),
        "a topic does not exist, or was deleted while it was read.",
    ),
    Sign(
        re.compile(
            r"Partition [\w.-]+'s offset was changed from \d+ to \d+|partitions are gone|"
            r"Partitions Set\([^)\n]*\) have been deleted"
        ),
        "records that were not read yet no longer exist ({found}): they have expired, or the "
        "topic was deleted. To go on without a deleted topic, use --on-topic-deleted skip.",
    ),
    Sign(
        re.compile(r"STATE_STORE_\w*SCHEMA\w*|Provided schema doesn't match to the schema"),
        "the checkpoint belongs to another query: its state has another shape; give this one its "
        "own --checkpoint.",
    ),
    Sign(
        re.compile(
            r"ConcurrentTransactionException|CONCURRENT_STREAM_LOG_UPDATE|DELTA_CONCURRENT\w*"
        ),
        "another run of this job writes to the same place; one of the two must end.",
    ),
    Sign(
        re.compile(
            r"No resolvable bootstrap urls|Failed to construct kafka consumer|"
            r"Timed out waiting for a node assignment|TimeoutException[^\n]{0,80}|"
            r"DisconnectException|Failed to get offsets? by|LeaderNotAvailable\w*|"
            r"NotLeaderOrFollower\w*|KafkaException[^\n]{0,80}Unexpected error code"
        ),
        UNREACHABLE + " ({found}); is the cluster up, and --bootstrap-server right?",
    ),
)


def explain(words: str) -> str | None:
    """The sentence for an error text of Spark. None if no `Sign` matches the text."""
    for sign in SIGNS:
        if found := sign.pattern.search(words):
            words_found = found.group(found.lastindex or 0).strip()
            return sign.meaning.format(found=words_found)
    return None


STREAM_FAILED = re.compile(r"^\[STREAM_FAILED\] .*? terminated with exception: ")
CAUSE = re.compile(r"^Caused by: [\w.$]+: (\[[A-Z0-9_.]+\] .+)$", re.MULTILINE)
"""Matches the line of a named Spark error in the text of a failed task.

PySpark does not always extract this line.
"""


def in_sparks_words(error: Exception) -> str | None:
    """The line of Spark's error that names the problem, such as a bad value or bad SQL."""
    words = str(error).strip()
    if "Traceback (most recent call last)" in words:
        return None  # our own Python code has failed inside a query
    if isinstance(error, PySparkException):
        return STREAM_FAILED.sub("", words.partition("\n")[0])
    causes: list[str] = CAUSE.findall(words)
    return causes[-1] if causes else None


ANY_CAUSE = re.compile(r"^Caused by: ([^\n]{1,200})", re.MULTILINE)


def cause(words: str) -> str:
    """The innermost cause in an error text of Spark, on one line."""
    causes: list[str] = ANY_CAUSE.findall(words)
    return causes[-1] if causes else words.strip().partition("\n")[0][:200]


DETAILS = " (use --log-level ERROR for details)"
JVM_HAS_ENDED = (
    "Spark's JVM has ended. If it was out of memory, give it more with --driver-memory; "
    "complete batches are kept."
)


def run(job: Callable[[], int]) -> int:
    """Run a job; returns its exit status.

    If the job fails, `run` prints one sentence on stderr and returns 1. If the error is a bug,
    `run` raises it.
    """
    # SIGTERM has the effect of Ctrl-C: the query stops, and the next run continues where it
    # stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Py4J logs an error with a traceback and also raises it. This handler hides the traceback.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return job()
    except KeyboardInterrupt:
        print("tidelog: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        sentence = sentence_for(error)
        if sentence is None:
            raise
    print(f"tidelog: {sentence}", file=sys.stderr)
    return 1


def sentence_for(error: Exception) -> str | None:
    """The sentence for the user. None if the error is a bug."""
    if isinstance(error, JobFailed):
        return str(error)
    if isinstance(error, ConnectionError | Py4JNetworkError):
        return JVM_HAS_ENDED
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    if meaning := explain(str(error)):
        return meaning
    if reported := in_sparks_words(error):
        return f"Spark reports: {reported}{DETAILS}"
    return None
