"""`ingest` reads odd Avro values: each record becomes a complete row or is quarantined."""

import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from tests.pipelines.nasty import avro_corpus
from tests.pipelines.nasty.comparable import plain
from tests.pipelines.nasty.independent_avro import TEXT, NotAvro, decode, random_value
from tests.pipelines.nasty.tables_of_ingest import three_cuts, written

from tidelog.testing import Cluster
from tidelog_pipelines.transformations.values.avro_binary import AvroDecoder
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Refused

HEADER = avro_corpus.HEADER
KIND = """{"type":"struct","fields":[
{"name":"id","type":"long"},{"name":"small","type":"integer"},{"name":"maybe","type":"string"},
{"name":"ratio","type":"double"},{"name":"rough","type":"float"},{"name":"blob","type":"binary"},
{"name":"flag","type":"boolean"},{"name":"suit","type":"string"},{"name":"hash","type":"binary"},
{"name":"lines","type":{"type":"array","containsNull":false,"elementType":{"type":"struct","fields":
  [{"name":"n","type":"long"},{"name":"suit","type":"string"}]}}},
{"name":"counts","type":{"type":"map","keyType":"string","valueType":"long",
  "valueContainsNull":false}},
{"name":"either","type":{"type":"struct","fields":
  [{"name":"member0","type":"integer"},{"name":"member1","type":"string"}]}},
{"name":"day","type":"date"},{"name":"millis","type":"timestamp"},
{"name":"micros","type":"timestamp"},{"name":"price","type":"decimal(6,2)"}]}"""


def expected(raw: bytes) -> Any:
    if raw[:5] != HEADER:
        raise NotAvro("another header")
    return plain(decode(raw[5:]))


@given(st.integers(0, 2**32), st.data())
def test_any_damage_is_refused_or_decoded_as_an_independent_decoder_does(
    seed: int, data: st.DataObject
) -> None:
    decoder = AvroDecoder(TEXT, StructType.fromJson(_json()), None, DEFAULT_LIMITS)
    raw = random_value(random.Random(seed))
    at = data.draw(st.integers(0, len(raw)))
    raw = raw[:at] + data.draw(st.binary(max_size=3)) + raw[at + data.draw(st.integers(0, 2)) :]
    try:
        wanted = plain(decode(raw))
    except NotAvro:
        wanted = None
    try:
        found = plain(decoder.decode(raw, (0, 0))[0])
    except Refused:
        found = None
    if found is not None:
        found.setdefault("counts", {})
        found["counts"] = found["counts"] or {}
    assert found == wanted


def _json() -> dict[str, Any]:
    import json

    def complete(node: Any) -> Any:
        if isinstance(node, dict):
            extra = {"nullable": True, "metadata": {}} if "name" in node else {}
            return {**{key: complete(one) for key, one in node.items()}, **extra}
        return [complete(one) for one in node] if isinstance(node, list) else node

    found = complete(json.loads(KIND))
    assert isinstance(found, dict)
    return found


def test_the_corpus_in_one_batch_in_many_and_in_random_cuts(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    values = avro_corpus.values()
    schema = tmp_path / "odd.avsc"
    schema.write_text(TEXT)
    outs = three_cuts(
        spark,
        cluster,
        topic,
        tmp_path,
        values,
        value_format="avro",
        schema=str(schema),
        avro_registry_header=True,
        avro_schema_id=avro_corpus.SCHEMA_ID,
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
    assert len(found[0].rows) > 300
    assert len(found[0].quarantine) > 300
    for other in found[1:]:
        assert repr(sorted(other.rows.items())) == repr(sorted(found[0].rows.items()))
        assert other.quarantine == found[0].quarantine
