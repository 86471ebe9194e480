"""`ingest` of odd Avro values of several writers: each becomes a complete row or is quarantined."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.pipelines.nasty import registry_corpus
from tests.pipelines.nasty.comparable import plain
from tests.pipelines.nasty.independent_avro import NotAvro, decode
from tests.pipelines.nasty.tables_of_ingest import three_cuts, written
from tests.pipelines.schema_registry import running

from tidelog.testing import Cluster

USABLE = {1: registry_corpus.SCHEMAS[0], 2: registry_corpus.SCHEMAS[1]}
BRANCHES = {"member0": "int", "member1": "string"}


def expected(raw: bytes) -> Any:
    id = int.from_bytes(raw[1:5], "big")
    if len(raw) < 5 or raw[0] or id not in USABLE:
        raise NotAvro("no such schema")
    found = decode(raw[5:], USABLE[id])
    if found["either"] is not None:
        found["either"] = {BRANCHES[name]: one for name, one in found["either"].items()}
    return plain(found)


def test_the_corpus_in_one_batch_in_many_and_in_random_cuts(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    values = registry_corpus.values()
    with running() as registry:
        for schema in registry_corpus.SCHEMAS:
            registry.register("odd-value", json.dumps(schema))
        outs = three_cuts(
            spark,
            cluster,
            topic,
            tmp_path,
            values,
            value_format="avro",
            schema_registry=registry.url,
        )
    # Compare times as numbers, because Python's datetime cannot represent all of them.
    value = f.col("value")
    for name in ("millis", "micros"):
        value = value.withField(name, f.unix_micros(f"value.{name}"))
    value = value.withField("day", f.unix_date("value.day"))
    found = [written(spark, topic, out, value) for out in outs]
    assert sorted([*found[0].rows, *found[0].quarantine]) == list(range(len(values)))
    for offset, raw in enumerate(values):
        try:
            wanted = None if raw is None else expected(raw)
        except NotAvro:
            assert found[0].quarantine[offset][0] == raw
            continue
        assert plain(found[0].rows[offset]["value"]) == wanted, raw
        assert found[0].rows[offset]["_rescued"] is None
    assert len(found[0].rows) > 300
    assert len(found[0].quarantine) > 300
    reasons = {reason for _, reason in found[0].quarantine.values()}
    assert (
        "schema 3 does not fit the table: field flag is STRING, and BOOLEAN in the table" in reasons
    )
    assert f"the schema registry has no schema with id {registry_corpus.UNKNOWN_ID}" in reasons
    for other in found[1:]:
        assert other.type == found[0].type
        assert repr(sorted(other.rows.items())) == repr(sorted(found[0].rows.items()))
        assert other.quarantine == found[0].quarantine
