"""What a job tells its user when it cannot go on: one sentence, and never a page of Java."""

import re
import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

UNREACHABLE = "no broker answers"
"""Begins the sentence of every failure that may pass by itself."""


class JobFailed(Exception):
    """One sentence for the user; the job ends with status 1 and no traceback."""


class Sign(NamedTuple):
    """How a failure shows in what Spark says, and what it means."""

    pattern: re.Pattern[str]
    meaning: str


SIGNS = (
    # What our own code has said inside of a query comes back in Spark's words.
    Sign(re.compile(r"TopicReplaced: ([^\n]+)"), "{found}"),
    Sign(
        re.compile(r"No space left on device|Disk quota exceeded"),
        "the disk is full (Spark's words: {found}); make room and start again: what was written "
        "whole stays, the rest is written again.",
    ),
    Sign(
        re.compile(r"UnknownTopicOrPartitionException[^\n]*"),
        "a topic does not exist, or was deleted while it was read.",
    ),
    Sign(
        re.compile(r"Partition [\w.-]+'s offset was changed from \d+ to \d+|partitions are gone"),
        "records that were not read yet are no longer there ({found}): they have expired, or the "
        "topic was deleted and created again.",
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
    """The sentence for what Spark has said, if it is a known one."""
    for sign in SIGNS:
        if found := sign.pattern.search(words):
            words_found = found.group(found.lastindex or 0).strip()
            return sign.meaning.format(found=words_found)
    return None


def run(job: Callable[[], int]) -> int:
    """The job's exit status; a failure gives 1 after one sentence on stderr."""
    # To be told to end is the same as Ctrl-C: the query is stopped, and goes on where it was.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return job()
    except JobFailed as failure:
        sentence = str(failure)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        sentence = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except Exception as error:
        meaning = explain(str(error))
        if meaning is None:
            raise
        sentence = meaning
    print(f"tidelog: {sentence}", file=sys.stderr)
    return 1
