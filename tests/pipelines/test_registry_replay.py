"""`replay` with a schema registry: a record is decoded once the registry has its schema."""

import json
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import Row, SparkSession
from tests.pipelines.quarantined_records import Bad, Lake
from tests.pipelines.schema_registry import running

from tidelog_pipelines.jobs import replay

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
TEA = b"\2\6tea"
"""The order {"id": 1, "item": "tea"} in Avro."""


def test_a_record_passes_once_the_registry_has_its_schema(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(spark, tmp_path)
    with running() as registry:

        def replayed(**options: bool) -> list[str]:
            chosen = replay.ReplaySettings(
                out=str(tmp_path),
                value_format="avro",
                schema_registry=registry.url,
                **options,  # type: ignore[arg-type]
            )
            replay.run(spark, chosen)
            return capsys.readouterr().out.splitlines()

        client = SchemaRegistryClient({"url": registry.url})
        known = client.register_schema("orders-value", Schema(json.dumps(ORDER), "AVRO"))
        unknown = f"the schema registry has no schema with id {known + 1}"
        lake.quarantine(
            Bad("orders", 0, 4, b"\0" + known.to_bytes(4, "big") + TEA, "no such schema"),
            Bad("orders", 0, 5, b"\0" + (known + 1).to_bytes(4, "big") + TEA, "no such schema"),
        )

        assert replayed(dry_run=True) == [
            "orders: 1 would pass, 1 would stay in quarantine",
            f"  1: {unknown}",
        ]
        assert lake.tables.rows("tables/orders") is None
        assert lake.tables.rows("schemas") is None, "a trial writes nothing"

        assert replayed() == ["orders: 1 replayed, 1 still in quarantine", f"  1: {unknown}"]
        assert replayed() == ["orders: 0 replayed, 1 still in quarantine", f"  1: {unknown}"]

    assert lake.rows("tables/orders", "offset", "value") == [(4, Row(id=1, item="tea"))]
    assert lake.rows("quarantine", "offset", "reason") == [(5, unknown)]
