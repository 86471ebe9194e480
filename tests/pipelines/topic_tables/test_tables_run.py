"""`tables run` as a process.

Topics are added, removed and fail, and each record is written once.
"""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from tests.cluster.foreground import tidelog
from tests.cluster.ports import first_free_port
from tests.pipelines import records
from tests.pipelines.chaos import PATIENCE_SECONDS, QUICK, Driver
from tests.pipelines.single_ingest import rows

from tidelog.client.administration.config_admin import alter_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.testing import Cluster

LONG_AGO_MS = 1_500_000_000_000
COUNT = 40


class Tables:
    """A running `tables run`, its cluster, and the states in its file."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.bootstrap = cluster.bootstrap
        self.out = directory / "lake"
        self.port = first_free_port(1)
        self.driver = Driver(
            [
                *("--bootstrap-server", cluster.bootstrap, "--out", str(self.out)),
                *("--interval", "0.5", "--every", "200 milliseconds", "--upkeep-seconds", "5"),
                *("--compact-every", "2", "--metrics-port", str(self.port)),
                *("--master", "local[2,4]", "--conf", QUICK),
            ],
            directory / "tables.log",
            "topic_tables.run",
        )

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        records.create(self.bootstrap, topic, partitions, copies=1)
        self.set(topic, **{"enable": "true", **configs})

    def set(self, topic: str, **configs: str) -> None:
        keys = {f"tidelog.table.{key.replace('_', '.')}": one for key, one in configs.items()}
        with Client(self.bootstrap) as client:
            alter_configs(client, ResourceType.TOPIC, topic, set_to=keys, delete=[])

    def write(self, topic: str, first: int, form: str = '{{"id":{}}}', **how: Any) -> None:
        """Write COUNT records, numbered from `first` on, with the current time."""
        values = [form.format(number) for number in range(first, first + COUNT)]
        records.produce(
            self.bootstrap, topic, values, **{"timestamp": time.time_ns() // 1_000_000, **how}
        )

    def note(self, topic: str, key: str) -> None:
        """Write COUNT text values, all with this key."""
        self.write(topic, 0, f"{key} {{}}", key=key)

    def _noted(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.out / "_tables.json").read_text())
        except FileNotFoundError:
            return {"checkpoint": 0, "tables": {}}
        return found

    def state(self, topic: str) -> dict[str, Any]:
        return dict(self._noted()["tables"].get(topic, {}))

    @property
    def query(self) -> int:
        """The number of the query, which grows when topics or their settings change."""
        return int(self._noted()["checkpoint"])

    def await_that(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert self.driver.is_running(), self.driver.said()
            assert time.monotonic() < deadline, f"{self._noted()}\n{self.driver.said()}"
            time.sleep(0.05)

    def await_state(self, topic: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
        self.await_that(lambda: is_so(self.state(topic)))

    def await_rows(self, topic: str, count: int) -> None:
        self.await_state(topic, lambda found: found.get("rows") == count)

    def await_error(self, topic: str, sentence: str) -> None:
        self.await_state(topic, lambda found: sentence in found.get("error", ""))


@pytest.fixture
def tables(cluster: Cluster, tmp_path: Path) -> Iterator[Tables]:
    running = Tables(cluster, tmp_path)
    yield running
    running.driver.kill()
    print(running.driver.said())


def test_topics_come_go_and_fail_and_each_record_is_in_its_table_once(
    spark: SparkSession, tables: Tables, topic: str
) -> None:
    orders, notes, late, bad = (
        f"{name}-{topic[-8:]}" for name in ("orders", "notes", "late", "bad")
    )
    # There are two tables with different formats and modes, a topic that cannot be decoded, and a
    # topic that is not a table yet.
    tables.create(orders, partitions=2)
    tables.create(notes, value_format="text", mode="upsert")
    tables.create(bad, value_format="avro")
    tables.create(late, enable="false")
    tables.write(orders, 0)
    tables.note(notes, "a")
    tables.write(late, 0)
    tables.driver.start()
    tables.await_rows(orders, COUNT)
    tables.await_rows(notes, 1)
    tables.await_error(bad, "the format avro needs a schema registry")
    assert not tables.state(late)

    # A topic becomes a table later. The topic with orders gets a new field and a bad record.
    tables.set(late, enable="true")
    tables.write(orders, COUNT, '{{"id":{},"gift":true}}')
    records.produce(tables.bootstrap, orders, ["no JSON"])
    tables.await_rows(late, COUNT)
    tables.await_rows(orders, 2 * COUNT)
    tables.await_state(orders, lambda found: found["quarantined"] == 1)

    # The job is killed while it still has records to write.
    tables.write(orders, 2 * COUNT)
    tables.write(late, COUNT)
    tables.driver.kill()
    tables.note(notes, "b")
    tables.set(late, enable="false")
    tables.driver.start()
    tables.await_rows(orders, 3 * COUNT)
    tables.await_rows(notes, 2)
    tables.await_state(late, lambda found: found["state"] == "off")

    # If a format does not fit a table, only this table stops. Setting the former format again
    # repairs the table.
    before = tables.query
    tables.set(notes, value_format="raw")
    tables.await_that(lambda: tables.query > before)
    tables.note(notes, "c")
    tables.set(late, enable="true")
    tables.await_error(notes, "was written with another --value-format")
    tables.await_rows(late, 2 * COUNT)
    assert tables.state(notes)["rows"] == 2
    tables.set(notes, value_format="text")
    tables.await_rows(notes, 3)
    assert tables.state(notes)["state"] == "running"

    # Old rows expire. If a topic is deleted and created again, its table does not get the new
    # records.
    tables.write(late, 2 * COUNT, timestamp=LONG_AGO_MS)
    tables.await_rows(late, 3 * COUNT)
    tables.set(late, retention_ms="86400000")
    tables.await_rows(late, 2 * COUNT)
    records.delete(tables.bootstrap, late)
    tables.await_error(late, "the topic was deleted; its table is kept")
    tables.create(late)
    tables.await_error(late, "was deleted and created again")

    check_metrics(tables, orders, bad)
    check_listing(tables, orders, bad)
    assert tables.driver.stop() == 0, tables.driver.said()
    assert "Traceback" not in tables.driver.said()
    assert tables.state(orders)["state"] == "waiting"
    check_rows(spark, tables.out, orders, notes, late)


def check_metrics(tables: Tables, orders: str, bad: str) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{tables.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert f'tidelog_tables_rows{{topic="{orders}"}} {3 * COUNT}.0' in lines
    assert f'tidelog_tables_quarantined{{topic="{orders}"}} 1.0' in lines
    assert f'tidelog_tables_state{{state="error",topic="{bad}"}} 1.0' in lines
    assert f'tidelog_tables_lag_records{{partition="0",topic="{orders}"}} 0.0' in lines


def check_listing(tables: Tables, orders: str, bad: str) -> None:
    where = ("--out", str(tables.out), "--bootstrap-server", tables.bootstrap)
    listed = {row["topic"]: row for row in json.loads(tidelog("tables", *where, "--json"))}
    found = listed[orders]
    assert found.pop("last_batch").startswith("20")
    assert found == {
        "topic": orders,
        "state": "running",
        "mode": "append",
        "rows": 3 * COUNT,
        "quarantined": 1,
        "lag": 0,
        "error": None,
    }
    assert listed[bad]["state"] == "error"
    lines = tidelog("tables", "list", *where).splitlines()
    assert [line.split()[1] for line in lines if line.startswith(f"{orders} ")] == ["running"]


def check_rows(spark: SparkSession, out: Path, orders: str, notes: str, late: str) -> None:
    numbers = [Row(id=number) for number in range(3 * COUNT)]
    assert rows(spark, out, f"tables/{orders}", "value.id") == numbers
    gifts = rows(spark, out, f"tables/{orders}", "value.gift")
    assert gifts == [Row(gift=None)] * 2 * COUNT + [Row(gift=True)] * COUNT
    texts = rows(spark, out, f"tables/{notes}", "key", "value")
    assert texts == [Row(key=key, value=f"{key} {COUNT - 1}") for key in "abc"]
    assert rows(spark, out, f"tables/{late}", "value.id") == numbers[: 2 * COUNT]
    assert rows(spark, out, "quarantine", "topic", "reason") == [
        Row(topic=orders, reason="the value is not JSON")
    ]
    assert not (out / "checkpoints").exists(), "a stopped query leaves no checkpoint"
