"""`ingest` reads the corpus of odd JSON: each record becomes a complete row or is quarantined."""

from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipelines.nasty import corpus
from tests.pipelines.nasty.independent_json import (
    NotJson,
    decode,
    object_of_row,
    without_nulls,
)
from tests.pipelines.nasty.tables_of_ingest import Written, three_cuts, written

from tidelog.testing import Cluster


def check(values: list[bytes | None], found: Written) -> None:
    assert sorted([*found.rows, *found.quarantine]) == list(range(len(values)))
    for offset, raw in enumerate(values):
        try:
            expected = None if raw is None else without_nulls(decode(raw))
        except NotJson:
            assert found.quarantine[offset][0] == raw
            assert found.quarantine[offset][1].startswith("the value ")
            continue
        row = found.rows[offset]
        assert object_of_row(row["value"], row["_rescued"]) == expected, raw


def test_the_corpus_in_one_batch_in_many_and_in_random_cuts(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    values = corpus.values()
    outs = three_cuts(spark, cluster, topic, tmp_path, values, max_fields=60)
    found = [written(spark, topic, out) for out in outs]
    check(values, found[0])
    for other in found[1:]:
        assert other.type == found[0].type
        assert other.rows == found[0].rows
        assert other.quarantine == found[0].quarantine
