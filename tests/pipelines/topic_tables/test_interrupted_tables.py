"""A signal ends `tables run` cleanly, even between two queries."""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.single_ingest import rows

from tidelog.testing import Cluster
from tidelog_pipelines.jobs.topic_tables import run


@pytest.fixture
def terminations() -> Iterator[None]:
    """As in a real process, SIGTERM raises KeyboardInterrupt unless the job handles it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("terminations")
def test_a_signal_after_the_end_of_a_query_ends_the_job(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ['{"id":1}'])
    chosen, out = tmp_path / "tables.toml", tmp_path / "lake"
    chosen.write_text(f'["{topic}"]\n')
    remove, signals = shutil.rmtree, list[str]()

    def remove_after_a_signal(path: str, **how: Any) -> None:
        if Path(path).is_dir():  # the checkpoint of a query that has ended
            signals.append(path)
            os.kill(os.getpid(), signal.SIGTERM)
        remove(path, **how)

    def state() -> dict[str, Any]:
        file = out / "_tables.json"
        found = json.loads(file.read_text())["tables"] if file.exists() else {}
        return dict(found.get(topic, {}))

    def drop_the_table_when_it_is_written() -> None:
        while state().get("rows") != 1:
            time.sleep(0.05)
        chosen.write_text("")  # the query ends, because nothing is left to read

    monkeypatch.setattr(shutil, "rmtree", remove_after_a_signal)
    threading.Thread(target=drop_the_table_when_it_is_written, daemon=True).start()
    settings = run.TablesSettings(
        bootstrap_server=cluster.bootstrap,
        out=str(out),
        tables_file=str(chosen),
        interval=0.2,
        every="200 milliseconds",
        group="",
    )
    try:
        run.run(spark, settings)
    except KeyboardInterrupt:
        pytest.fail("the job did not handle the signal")
    assert signals == [str(out / "checkpoints")]
    assert state()["state"] == "off"
    assert len(rows(spark, out, f"tables/{topic}", "value.id")) == 1
