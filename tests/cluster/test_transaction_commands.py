"""`tidelog transactions` prints what kafka-transactions.sh prints, on one cluster.

With `--system kafka` the cluster is Apache Kafka, so the commands work there, too.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from tests.cluster.apache import chosen_cluster
from tests.cluster.side_by_side import OURS, THEIRS, SideBySide

from tidelog.testing import Cluster

TRANSACTIONS = "kafka-transactions"
TOPIC = "orders"
PARTITION = ("--topic", TOPIC, "--partition", "0")


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with chosen_cluster(request, kafka_libs, tmp_path_factory) as cluster:
        cluster.create_topic(TOPIC, partitions=3, replication_factor=3)
        yield cluster


@pytest.fixture
def both(cluster: Cluster, kafka_libs: Path, tmp_path: Path) -> SideBySide:
    return SideBySide(kafka_libs, cluster, tmp_path)


def begin(cluster: Cluster, transactional_id: str, partition: int) -> Producer:
    """A producer with an open transaction of one record."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}
    )
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=partition)
    assert producer.flush(120) == 0
    return producer


def test_transactions_are_listed_and_described(both: SideBySide, cluster: Cluster) -> None:
    begin(cluster, "done", 1).commit_transaction(120)
    producer = begin(cluster, "open", 1)
    assert "Ongoing" in both.same(TRANSACTIONS, "list", any_order=True)
    pattern = ("--transactional-id-pattern", "do.*")
    assert "open" not in both.same(TRANSACTIONS, "list", *pattern)
    both.same(TRANSACTIONS, "list", "--duration-filter", "86400000")
    assert "CompleteCommit" in both.same(TRANSACTIONS, "list", *pattern)
    named = ("describe", "--transactional-id", "open")
    theirs, ours = (
        re.sub(r"(\d{13})(\s+)\d+ *", r"\1\2DURATION", said).strip()
        for _, said in (both.kafka(TRANSACTIONS, *named), both.tidelog(TRANSACTIONS, *named))
    )
    assert ours == theirs
    assert f"{TOPIC}-1" in ours
    both.same(TRANSACTIONS, "describe", "--transactional-id", "missing")
    where = ("--topic", TOPIC, "--partition", "1")
    both.same(TRANSACTIONS, "describe-producers", *where)
    both.same(TRANSACTIONS, "describe-producers", *where, "--broker-id", "2")
    both.same(TRANSACTIONS, "find-hanging", "--topic", TOPIC, "--max-transaction-timeout", "0")
    both.same(TRANSACTIONS, "find-hanging", "--broker-id", "1")
    both.same(TRANSACTIONS, "find-hanging")
    producer.commit_transaction(120)


def test_an_open_transaction_is_aborted_in_its_partition(
    both: SideBySide, cluster: Cluster
) -> None:
    open_producers = [begin(cluster, name, 0) for name in (THEIRS, OURS)]
    both.same(TRANSACTIONS, "abort", *PARTITION)
    both.same(TRANSACTIONS, "abort", *PARTITION, "--start-offset", "7")
    both.same(TRANSACTIONS, "abort", *PARTITION, "--producer-id", "7")
    for start, abort in enumerate((both.kafka, both.tidelog)):
        assert abort(TRANSACTIONS, "abort", *PARTITION, "--start-offset", str(start))[0] == 0
        said = both.same(TRANSACTIONS, "describe-producers", *PARTITION)
        assert len(re.findall(r"None\s*$", said, re.M)) == start + 1
    for producer in open_producers:
        producer.abort_transaction(120)


def test_a_transaction_is_terminated_and_its_producer_is_fenced(
    both: SideBySide, cluster: Cluster
) -> None:
    open_producers = [begin(cluster, f"{name}-2", 2) for name in (THEIRS, OURS)]
    both.same(TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", f"{THEIRS}-2")
    for producer in open_producers:
        with pytest.raises(KafkaException, match="fenced"):
            producer.commit_transaction(120)
