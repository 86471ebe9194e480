"""Exactly once into a topic: whatever is killed, a reader of committed records sees each once.

The full run: `./test tests/pipelines/transactional/test_sink_kills.py` with --ingest-records
1000000 --driver-kills 10 --broker-kills 20. With --system kafka, it runs on Apache Kafka.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.apache import KafkaCluster
from tests.pipelines import records
from tests.pipelines.chaos import QUICK, Driver, Load, driver_kills, kill_brokers
from tests.pipelines.transactional.committed_records import committed

from tidelog.testing import Cluster

PARTITIONS = 3


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.config.getoption("--system") == "kafka":
        libs = request.getfixturevalue("kafka_libs")
        with KafkaCluster(libs, 3, directory=tmp_path / "kafka") as cluster:
            yield cluster
    else:
        yield request.getfixturevalue("cluster")


@contextmanager
def worker_kills(driver: Driver, dice: random.Random) -> Iterator[list[float]]:
    """In a thread, kill a Python worker of the running driver every few seconds."""
    over, killed = threading.Event(), list[float]()

    def run() -> None:
        while not over.wait(dice.uniform(2, 6)):
            if driver.is_running() and driver.kill_worker(dice):
                killed.append(time.monotonic())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("writers", [1, 3])
def test_f93_every_record_is_committed_once_while_all_kinds_of_processes_are_killed(
    request: pytest.FixtureRequest, source: Cluster, topic: str, tmp_path: Path, writers: int
) -> None:
    options = request.config.option
    topics = (f"in-{topic[-6:]}", f"out-{topic[-6:]}")
    for name in topics:
        records.create(source.bootstrap, name, PARTITIONS)
    dice = random.Random(writers)
    driver = Driver(
        [
            *("--bootstrap-server", source.bootstrap, "--from", topics[0], "--to", topics[1]),
            *("--checkpoint", str(tmp_path / "checkpoint"), "--writers", str(writers)),
            *("--master", "local[2,4]", "--conf", QUICK),
        ],
        tmp_path / "driver.log",
        "topic_copy",
        "tests.pipelines.transactional",
    )
    try:
        with (
            Load(source.bootstrap, topics[0], options.ingest_records, PARTITIONS) as load,
            worker_kills(driver, dice) as killed,
            driver_kills(driver, load, options.driver_kills, dice),
        ):
            kill_brokers(source, topics[1], options.broker_kills, dice)
        driver.start("--once")
        assert driver.wait() == 0
    finally:
        driver.kill()
        print(driver.said())
    assert not load.failed
    assert load.acknowledged == options.ingest_records
    found = Counter(committed(source.bootstrap, topics[1]))
    print(
        f"acknowledged {load.acknowledged:,}, committed {found.total():,}, different "
        f"{len(found):,}; workers killed {len(killed)}"
    )
    assert (found.total(), len(found)) == (load.acknowledged, load.acknowledged)
