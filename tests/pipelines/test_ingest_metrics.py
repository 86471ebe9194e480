"""A running ingest serves its lag and its counts to Prometheus."""

import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.ports import first_free_port
from tests.pipelines import records

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.jobs.ingest_metrics import lag, scraped

PATIENCE_SECONDS = 600.0
READ = "tidelog_ingest_records_total 3.0"


def test_lag_and_counts_are_served_while_the_job_runs(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ['{"id":1}', "{", '{"id":2}'])
    port = first_free_port(1)
    chosen = ingest.IngestSettings(
        bootstrap_server=cluster.bootstrap,
        topics=topic,
        out=str(tmp_path),
        group="",
        metrics_port=port,
    )
    scraped: list[str] = []

    def scrape() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and READ not in "".join(scraped[-1:]):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                    scraped.append(answer.read().decode())
            except urllib.error.URLError:
                pass  # not served yet
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    scraper = threading.Thread(target=scrape, daemon=True)
    scraper.start()
    ingest.run(spark, chosen)
    scraper.join()
    lines = scraped[-1].splitlines()
    assert READ in lines
    assert "tidelog_ingest_rows_total 2.0" in lines
    assert "tidelog_ingest_quarantined_total 1.0" in lines
    assert "tidelog_ingest_batch_seconds_count 1.0" in lines
    assert f'tidelog_ingest_lag_records{{partition="0",topic="{topic}"}} 0.0' in lines
    with socket.socket() as again:  # the port is free again
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("0.0.0.0", port))
        again.listen()
        with pytest.raises(JobFailed, match=r"--metrics-port \d+ cannot be used: Address already"):
            ingest.run(spark, chosen)


class Nothing:
    """A collector without metrics."""

    def collect(self) -> tuple[()]:
        return ()


def test_metrics_are_served_at_the_chosen_address_only() -> None:
    port = first_free_port(1)
    with scraped(("127.0.0.1", port), Nothing()):
        with socket.create_connection(("127.0.0.1", port)):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port))
    with scraped(("0.0.0.0", port), Nothing()), socket.create_connection(("127.0.0.2", port)):
        pass
    assert ingest.IngestSettings(out="o", topics="t").metrics_host == "127.0.0.1"


def test_an_address_that_this_machine_does_not_have_is_refused() -> None:
    with pytest.raises(
        JobFailed, match=r"--metrics-host 192.0.2.1 --metrics-port 9 cannot be used"
    ):
        scraped(("192.0.2.1", 9), Nothing()).__enter__()


def test_lag_is_counted_from_the_end_of_the_batch() -> None:
    offsets = {
        "endOffset": {"t": {"0": 5, "1": 7}},
        "latestOffset": {"t": {"0": 9, "1": 7, "2": 4}},
    }
    assert lag({"sources": [offsets]}) == {"t": {0: 4, 1: 0, 2: 4}}
    assert lag({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
