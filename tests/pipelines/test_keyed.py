"""Tables whose rows change by key do not depend on how the records are cut into batches."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType
from tests.pipelines.key_models import MODELS, Raw, table
from tests.pipelines.quarantined_records import TIME, Bad, Lake

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import replay
from tidelog_pipelines.sinks import deletes, keyed
from tidelog_pipelines.sinks.destinations import Destination, destination
from tidelog_pipelines.sinks.modes import HISTORY, UPSERT, Mode
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.table_formats.formats import CHANGING
from tidelog_pipelines.sinks.tables import Layout
from tidelog_pipelines.transformations.values.decoding import Json, Text, decoded, with_deletes

RECORD = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OWN = destination("t")
BAD_VALUES = ("{", "three")


class Keyed:
    """The table `t`, whose rows change by key."""

    def __init__(
        self,
        spark: SparkSession,
        out: Path,
        mode: str,
        at: Destination = OWN,
        kind: str = "delta",
    ) -> None:
        self._spark, self._out, self._mode, self._at = spark, out, mode, at
        self.tables = CHANGING[kind](spark, str(out))

    def apply(self, batch: Sequence[Raw], columns: str = "n BIGINT") -> keyed.Applied:
        rows = [
            (
                *(
                    self._at.topic,
                    one.partition,
                    one.offset,
                    EPOCH + timedelta(milliseconds=one.millis),
                ),
                None if one.key is None else one.key.encode(),
                None if one.value is None else one.value.encode(),
                None,
            )
            for one in batch
        ]
        kind = StructType.fromDDL(columns)
        assert isinstance(kind, StructType)
        records = with_deletes(self._spark.createDataFrame(rows, RECORD))
        also = self._at.topic_column
        examined = decoded(records, Text(is_required=True), Json(kind), also)
        target = keyed.Target(self._at, Mode(self._mode), Layout())
        return keyed.apply(self.tables, target, self.tables.rows("tables/t"), examined)

    def rows(self) -> list[tuple[Any, ...]]:
        return table(self._spark, self._out / "tables" / "t", self._mode)

    def rows_of_topic(self) -> list[tuple[Any, ...]]:
        """The same columns for the rows of one topic, read by Spark."""
        columns = ["key", "partition", "offset", "value.n"]
        if self._mode == HISTORY:
            columns += ["unix_millis(_valid_from)", "unix_millis(_valid_to)", "_is_current"]
        found = self._at.of_topic(self.tables.existing("tables/t")).selectExpr(*columns)
        return sorted(tuple(row) for row in found.collect())

    def deletes(self) -> list[Row]:
        found = self.tables.rows(deletes.name_of("t"))
        return [] if found is None else found.orderBy("partition", "offset").collect()


def random_records(dice: random.Random, count: int) -> list[Raw]:
    """Records of two partitions in topic order, with deletes, bad records and moved keys."""
    ends, found = [0, 0], []
    for number in range(count):
        key = dice.choice([None, *"abcdef"])
        has_moved = number > count // 2
        partition = ord(key or "a") % 2
        if key in ("a", "b") and has_moved:  # the number of partitions was raised
            partition = 1 - partition
        millis = 1_000 * number
        if key not in ("a", "b"):
            millis -= dice.choice([0, 0, 5_000])  # the clocks of producers differ
        value = dice.choice([f'{{"n":{number}}}', f'{{"n":{number}}}', None, *BAD_VALUES[:1]])
        found.append(Raw(partition, ends[partition], 1_700_000_000_000 + millis, key, value))
        ends[partition] += 1
    return found


def cut(dice: random.Random, records: Sequence[Raw], cuts: int) -> list[Sequence[Raw]]:
    places = sorted(dice.sample(range(1, len(records)), cuts))
    ends = [0, *places, len(records)]
    return [records[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize("mode", [UPSERT, HISTORY])
def test_the_table_is_the_same_for_every_cut_and_after_a_kill(
    spark: SparkSession, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(11)
    records = random_records(dice, 70)
    expected = MODELS[mode](records)
    assert len(expected) > 3

    at_once = Keyed(spark, tmp_path / "at-once", mode)
    applied = at_once.apply(records)
    bad = [one for one in records if one.key is None or one.value in BAD_VALUES]
    assert applied.refused == len(bad)
    assert at_once.rows() == expected

    in_parts = Keyed(spark, tmp_path / "in-parts", mode)
    first, second, third = cut(dice, records, 2)
    in_parts.apply(first)
    before, known = in_parts.rows(), in_parts.deletes()
    with monkeypatch.context() as patched:
        _kill_before_the_table_changes(patched)
        with pytest.raises(JobFailed, match="killed"):
            in_parts.apply(second)
    assert in_parts.rows() == before
    assert in_parts.deletes() != known, "the job was killed too early"
    in_parts.apply(second)
    in_parts.apply(third)
    assert in_parts.rows() == expected
    # Records that are read again change nothing, however they are cut into batches.
    assert in_parts.apply(records[10:60]).changed == 0
    assert in_parts.rows() == expected


@pytest.mark.parametrize(
    ("mode", "kind"), [(HISTORY, "delta"), (UPSERT, "iceberg"), (HISTORY, "iceberg")]
)
def test_topics_with_equal_keys_and_offsets_share_a_table(
    spark: SparkSession, tmp_path: Path, mode: str, kind: str
) -> None:
    dice = random.Random(12)
    topics = {name: random_records(dice, 40) for name in "ab"}
    found = {topic: Keyed(spark, tmp_path, mode, destination(topic, "t"), kind) for topic in topics}
    for first, last in ((0, 25), (20, 40)):  # some records are read twice
        for name, records in topics.items():
            found[name].apply(records[first:last])
    for name, records in topics.items():
        assert found[name].rows_of_topic() == MODELS[mode](records)


def _kill_before_the_table_changes(patched: pytest.MonkeyPatch) -> None:
    merge = DeltaTables.merge

    def killed(tables: DeltaTables, name: str, *more: Any) -> Any:
        if name.startswith("tables/"):
            raise JobFailed("killed")
        return merge(tables, name, *more)

    patched.setattr(DeltaTables, "merge", killed)


def test_a_new_value_leaves_nothing_of_the_old_one(spark: SparkSession, tmp_path: Path) -> None:
    found = Keyed(spark, tmp_path, UPSERT)
    columns = "n BIGINT, a STRING, more STRUCT<x: BIGINT, y: BIGINT>"
    whole = '{"n":1,"a":"one","more":{"x":1,"y":2}}'
    found.apply([Raw(0, 0, 0, "k", whole), Raw(0, 1, 0, "l", whole)], columns)
    # This row lacks some columns of the table, and has a new one.
    found.apply(
        [Raw(0, 2, 0, "k", '{"n":2,"z":7,"more":{"x":3}}')],
        "n BIGINT, z BIGINT, more STRUCT<x: BIGINT>",
    )
    rows = found.tables.rows("tables/t")
    assert rows is not None
    refused = found.apply([Raw(0, 3, 0, None, whole)], columns)
    assert (refused.changed, refused.refused) == (0, 1), "all records of the batch are bad"
    new, old = Row(x=3, y=None), Row(x=1, y=2)
    assert rows.orderBy("key").select("key", "offset", "value.*").collect() == [
        Row(key="k", offset=2, n=2, a=None, more=new, z=7),
        Row(key="l", offset=1, n=1, a="one", more=old, z=None),
    ]


@pytest.mark.parametrize("mode", [UPSERT, HISTORY])
def test_a_replayed_record_neither_replaces_a_newer_row_nor_brings_a_key_back(
    spark: SparkSession, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = round(TIME.timestamp() * 1_000)
    records = [Raw(0, 3, now, "k", '{"n":3}'), Raw(0, 6, now, "k", None)]
    Keyed(spark, tmp_path, mode).apply(records)
    lake = Lake(spark, tmp_path)
    late = {offset: f'{{"n":{offset}}}' for offset in (1, 5, 8)}
    reasons = {1: "old", 5: "old", 8: "newer than the delete"}
    lake.quarantine(*(Bad("t", 0, at, late[at].encode(), why) for at, why in reasons.items()))

    def replayed(**options: Any) -> None:
        replay.run(spark, replay.ReplaySettings(out=str(tmp_path), schema="n BIGINT", **options))

    def is_applied(*offsets: int) -> bool:
        known = [*records, *(Raw(0, at, now, "k", late[at]) for at in offsets)]
        return table(spark, tmp_path / "tables" / "t", mode) == MODELS[mode](known)

    replayed(dry_run=True)
    assert is_applied()
    replayed(reason="old")
    assert is_applied(1, 5)
    replayed()
    assert is_applied(1, 5, 8)
    assert lake.in_quarantine() == []
    assert lake.rows("replayed", "topic", "partition", "offset") == [
        ("t", 0, offset) for offset in late
    ]
    assert capsys.readouterr().out.splitlines() == [
        "t: 3 would pass, 0 would stay in quarantine",
        "t: 2 replayed, 0 still in quarantine",
        "t: 1 replayed, 0 still in quarantine",
    ]
    assert lake.rows(deletes.name_of("t"), "key", "offset") == [("k", 6)]
