"""The audit of hand-made records finds each kind of fault and nothing else.

Every test has its own topic, and one audit covers all of them.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.jobs.audit import Inputs, conduct
from tidelog_pipelines.sources.contents import DAMAGE
from tidelog_pipelines.transformations.events import parsed
from tidelog_pipelines.transformations.verdict import Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT_MS = round(NOW.timestamp() * 1000)
ACKED = (
    "topic STRING, partition INT, offset BIGINT, key BINARY, checksum STRING, acked_at TIMESTAMP"
)
READ = f"""replica INT, topic STRING, partition INT, offset BIGINT, checksum STRING,
    timestamp TIMESTAMP, damage {DAMAGE}"""


class Story:
    """The acknowledged records, the records in the log and the events of one topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.ledger: list[Any] = []
        self.log: list[Any] = []
        self.events: list[Any] = []

    def acked(
        self, offset: int | None, content: str, seconds: float = 1.0, key: bytes | None = None
    ) -> None:
        at, key = NOW + timedelta(seconds=seconds), content.encode() if key is None else key
        self.ledger.append((self.topic, 0, offset, key, content, at))

    def read(self, offset: int, content: str, seconds: float = 0.0, replica: int = -1) -> None:
        at = NOW + timedelta(seconds=seconds)
        self.log.append((replica, self.topic, 0, offset, content, at, None))

    def damaged(self, first: int, last: int) -> None:
        what = (first, last, 0, 500, "its CRC is wrong")
        self.log.append((-1, self.topic, 0, first, None, None, what))

    def event(self, **fields: Any) -> None:
        self.events.append((json.dumps({"v": 1, "topic": self.topic, "partition": 0, **fields}),))


STORIES: dict[str, Story] = {}


def story(tell: Callable[[Story], None]) -> str:
    """Build a story before the audit begins; the topic has the name of the function."""
    one = STORIES[tell.__name__] = Story(tell.__name__)
    tell(one)
    return one.topic


@dataclass(frozen=True)
class Audited:
    verdict: Verdict
    tables: dict[str, DataFrame]

    def rows(self, table: str, topic: str, *columns: str) -> list[tuple[Any, ...]]:
        found = self.tables[table].where(f.col("topic") == topic).select(*columns)
        return sorted(tuple(row) for row in found.collect())

    def counts(self, topic: str) -> dict[str, int]:
        """The number of rows that each table has for the topic."""
        together = [
            table.where(f.col("topic") == topic).select(f.lit(name).alias("name"))
            for name, table in self.tables.items()
        ]
        found = reduce(DataFrame.unionByName, together).groupBy("name").count().collect()
        return {row["name"]: row["count"] for row in found}


@pytest.fixture(scope="module")
def audited(spark: SparkSession) -> Audited:
    def gathered(what: Callable[[Story], list[Any]], schema: str) -> DataFrame:
        rows = [row for one in STORIES.values() for row in what(one)]
        return spark.createDataFrame(rows, schema)

    inputs = Inputs(
        gathered(lambda one: one.ledger, ACKED),
        gathered(lambda one: one.log, READ),
        parsed(gathered(lambda one: one.events, "value STRING")),
        has_replicas=True,
        compacted=("compacted",),
    )
    return Audited(*conduct(inputs, lambda table, name: table.localCheckpoint()))


@story
def sound(log: Story) -> None:
    for n in range(5):
        log.acked(n, f"c{n}")
        log.read(n, f"c{n}")


def test_a_sound_log_has_nothing_wrong(audited: Audited) -> None:
    assert audited.counts(sound) == {}


@story
def faulty(log: Story) -> None:
    for n in range(20):
        log.acked(n, f"c{n}")
        if n not in (3, 5, 6, 8, 10):
            log.read(n, f"c{n}")
    log.read(5, "c6")
    log.read(6, "c5")
    log.read(8, "rotten")
    log.read(10, "later", seconds=60)
    log.read(20, "c1")
    log.read(21, "never acknowledged")


def test_every_fault_is_told_from_the_others(audited: Audited) -> None:
    assert audited.rows("lost", faulty, "offset") == [(3,), (10,)]
    assert audited.rows("reordered", faulty, "offset", "found_offset") == [(5, 6), (6, 5)]
    assert audited.rows("corrupted", faulty, "offset", "found") == [(8, "rotten")]
    assert audited.rows("duplicated", faulty, "offset", "first_offset") == [(20, 1)]
    assert audited.rows("unacknowledged", faulty, "offset") == [(10,), (21,)]


@story
def offset_given_again(log: Story) -> None:
    log.acked(0, "a")
    log.acked(1, "lost")
    log.acked(1, "b", seconds=9)
    log.read(0, "a")
    log.read(1, "b", seconds=8)


def test_a_record_whose_offset_was_given_to_another_since_is_lost(audited: Audited) -> None:
    assert audited.counts(offset_given_again) == {"lost": 1}
    assert audited.rows("lost", offset_given_again, "offset", "checksum") == [(1, "lost")]


@story
def equal_contents(log: Story) -> None:
    for n in range(6):
        log.acked(n, "same")
        if n not in (3, 4):
            log.read(n, "same")
    log.read(6, "same")


def test_equal_contents_are_counted_and_not_taken_for_duplicates(audited: Audited) -> None:
    assert audited.counts(equal_contents) == {"lost": 1, "reordered": 1}


@story
def without_offset(log: Story) -> None:
    log.acked(0, "a")
    log.acked(None, "b")
    log.acked(None, "gone")
    log.read(0, "a")
    log.read(1, "b")


def test_an_acknowledgement_without_offset_asks_only_that_the_record_is_there(
    audited: Audited,
) -> None:
    assert audited.counts(without_offset) == {"lost": 1}
    assert audited.rows("lost", without_offset, "checksum") == [("gone",)]


@story
def retention(log: Story) -> None:
    for n in range(5):
        log.acked(n, f"c{n}")
        if n >= 2:
            log.read(n, f"c{n}")


def test_what_retention_took_is_not_lost(audited: Audited) -> None:
    assert audited.counts(retention) == {"expired": 2}


@story
def compacted(log: Story) -> None:
    tombstone = hashlib.md5(b"1:c-1:").hexdigest()[:16]
    for offset, key, content in (
        (0, b"a", "old a"),
        (1, b"b", "old b"),
        (2, b"c", "old c"),
        (3, b"a", "new a"),
        (4, b"b", "new b"),  # which the log has lost
        (5, b"c", tombstone),  # whose delete horizon has passed
        (6, b"d", "new d"),
    ):
        log.acked(offset, content, key=key)
        if offset in (3, 6):
            log.read(offset, content, replica=1)
    # The other replica has not compacted its log yet.
    for offset, content in ((2, "old c"), (3, "new a"), (6, "new d")):
        log.read(offset, content, replica=2)


def test_what_compaction_removed_is_not_lost_and_a_last_value_is(audited: Audited) -> None:
    assert audited.counts(compacted) == {"compacted": 3, "lost": 1}
    assert audited.rows("lost", compacted, "offset") == [(4,)]
    assert audited.rows("compacted", compacted, "offset") == [(0,), (1,), (5,)]


@story
def gone(log: Story) -> None:
    for n in range(3):
        log.acked(n, f"c{n}")


def test_a_partition_that_is_gone_is_lost_whole(audited: Audited) -> None:
    assert audited.counts(gone) == {"lost": 3}


@story
def unreadable(log: Story) -> None:
    for n in range(4):
        log.acked(n, f"c{n}")
        if n not in (1, 2):
            log.read(n, f"c{n}")
    log.damaged(1, 2)


def test_records_in_a_batch_that_cannot_be_read_are_corrupted(audited: Audited) -> None:
    assert audited.counts(unreadable) == {"corrupted": 2, "damaged": 1}
    assert set(audited.rows("corrupted", unreadable, "error")) == {("its CRC is wrong",)}


@story
def replicated(log: Story) -> None:
    for n in range(10):
        log.acked(n, f"c{n}")
        log.read(n, f"c{n}", replica=1)
        if n != 4:
            log.read(n, f"c{n}", replica=2)
        if n < 8:
            log.read(n, "rotten" if n == 6 else f"c{n}", replica=3)


def test_replicas_differ_where_one_lacks_or_changes_what_others_have(audited: Audited) -> None:
    columns = ("replica", "kind", "records", "first_offset", "last_offset")

    assert audited.rows("replicas", replicated, *columns) == [
        (1, "different", 1, 6, 6),
        (2, "different", 1, 6, 6),
        (2, "missing", 1, 4, 4),
        (3, "behind", 2, 8, 9),
        (3, "different", 1, 6, 6),
    ]
    assert audited.rows("lost", replicated, "offset") == []


@story
def explained(log: Story) -> None:
    log.acked(0, "a")
    log.acked(4, "b")
    log.read(0, "a")
    elected = {
        "event": "leader_elected",
        "node": 3,
        "leader": 2,
        "leader_before": 1,
        "leader_epoch": 5,
        "clean": True,
        "reason": "dead",
    }
    log.event(ts=AT_MS - 60_000, **elected)
    log.event(ts=AT_MS + 5_000, **elected)
    log.event(event="truncated", ts=AT_MS + 9_000, node=1, from_offset=9, to_offset=3)
    log.event(event="truncated", ts=AT_MS + 9_000, node=1, from_offset=90, to_offset=80)


def test_a_loss_is_explained_by_the_election_and_the_truncation_after_it(audited: Audited) -> None:
    columns = ("offset", "cause", "leader_before", "leader", "explanation")

    assert audited.rows("lost", explained, *columns) == [
        (
            4,
            "election",
            1,
            2,
            "broker 1 led at the acknowledgement and lost the lead (dead); broker 2 was elected at "
            "00:00:05.000 in epoch 5 without the record; broker 1 truncated its log from 9 to 3 "
            "at 00:00:09.000",
        )
    ]


def test_a_loss_without_any_event_says_so(audited: Audited) -> None:
    ((cause, said), *_) = audited.rows("lost", gone, "cause", "explanation")

    assert cause == "unknown"
    assert said.startswith("no election and no truncation")


def test_the_verdict_counts_them_all(audited: Audited) -> None:
    verdict = audited.verdict

    assert verdict.acknowledged == sum(len(one.ledger) for one in STORIES.values())
    assert (verdict.lost, verdict.duplicated, verdict.reordered) == (10, 1, 3)
    assert (verdict.corrupted, verdict.damaged, verdict.expired) == (3, 1, 2)
    assert verdict.compacted == 3
    assert (verdict.different, verdict.behind) == (4, 2)
    assert not verdict.is_clean
    assert verdict.sentence() == (
        f"acknowledged {verdict.acknowledged}, lost 10, duplicated 1, reordered 3, corrupted 3, "
        "damaged 1, different 4, expired 2, compacted 3, unacknowledged 2, behind 2"
    )


def test_a_clean_verdict_says_little() -> None:
    assert Verdict(acknowledged=5_000, readable=5_001, unacknowledged=1).is_clean
    assert Verdict(5_000, 5_000).sentence() == "acknowledged 5,000, lost 0, duplicated 0"
