"""The transactional sink on a real cluster: retries, zombies, and checkpoints that do not fit."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # it has no __all__
from pyspark.sql import SparkSession
from tests.cluster.apache import KafkaCluster
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit
from tests.pipelines.transactional import topic_copy
from tests.pipelines.transactional.committed_records import committed

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.checkpoint import Checkpoint


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.config.getoption("--system") == "kafka":
        libs = request.getfixturevalue("kafka_libs")
        with KafkaCluster(libs, 3, directory=tmp_path / "kafka") as cluster:
            yield cluster
    else:
        yield request.getfixturevalue("cluster")


class Copy:
    """A copy of a topic to another one, run in this process."""

    def __init__(self, spark: SparkSession, cluster: Cluster, topic: str, directory: Path) -> None:
        self._spark = spark
        self.bootstrap = cluster.bootstrap
        self.topics = (f"{topic}-in", f"{topic}-out")
        self.directory = directory
        self.written = 0
        for name in self.topics:
            records.create(self.bootstrap, name, partitions=2)

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def query_id(self) -> str:
        return Checkpoint(None, str(self.checkpoint)).query_id()

    def write(self, count: int = 10) -> None:
        numbers = range(self.written, self.written + count)
        records.produce(self.bootstrap, self.topics[0], [b"%d" % one for one in numbers])
        self.written += count

    def run(self, **how: int) -> None:
        kafka = KafkaSettings(bootstrap_server=self.bootstrap)
        topic_copy.run(self._spark, kafka, self.topics, self.checkpoint, **how)  # type: ignore[arg-type]

    def check(self) -> None:
        """Assert that a reader of committed records sees each number once."""
        found = sorted(map(int, committed(self.bootstrap, self.topics[1])))
        assert found == list(range(self.written))


@pytest.fixture
def copy(spark: SparkSession, source: Cluster, topic: str, tmp_path: Path) -> Copy:
    return Copy(spark, source, topic, tmp_path)


def test_f93_a_micro_batch_that_is_tried_again_is_seen_once(copy: Copy) -> None:
    for _ in range(2):
        copy.write()
        copy.run()
        copy.check()
        lose_the_last_commit(copy.directory)
        copy.run()
        copy.check()


def test_f93_what_a_dead_try_has_left_is_fenced_and_never_seen(copy: Copy) -> None:
    copy.write()
    copy.run()
    zombie = Producer(
        {
            "bootstrap.servers": copy.bootstrap,
            "transactional.id": f"tidelog-sink-{copy.query_id}-0",
            **records.QUIET,
        }
    )
    zombie.init_transactions(60)
    zombie.begin_transaction()
    zombie.produce(copy.topics[1], b"-1")
    zombie.flush(60)
    copy.write()
    copy.run()
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(60)
    assert fenced.value.args[0].fatal()
    copy.check()


def test_f93_a_micro_batch_committed_in_part_is_completed_with_its_own_writers(copy: Copy) -> None:
    """One of two writers fails, and the query continues with three writers."""
    copy.write()
    copy.run(writers=2)
    # The record of one writer names a partition that the topic does not have yet.
    copy.written += 20
    keyed = Producer({"bootstrap.servers": copy.bootstrap, **records.QUIET})
    for number in range(10, 30):
        keyed.produce(copy.topics[0], b"%d" % number, b"k%d" % number, partition=number % 2)
    assert keyed.flush(60) == 0
    columns = ("key", "value", "IF(value = '17', 2, NULL) AS partition")
    with pytest.raises(JobFailed, match=r"cannot be written|was interrupted"):
        copy.run(writers=2, columns=columns)  # type: ignore[arg-type]
    seen = {int(one) for one in committed(copy.bootstrap, copy.topics[1])}
    assert seen > set(range(10)), "one of the two writers has committed its part"
    assert 17 not in seen

    admin = records.admin(copy.bootstrap)
    for done in admin.create_partitions([NewPartitions(copy.topics[1], 3)]).values():
        done.result(60)
    records.await_everywhere(
        copy.bootstrap, copy.topics[1], lambda found: len(found.partitions) == 3
    )
    copy.run(writers=3, columns=columns)  # type: ignore[arg-type]
    copy.check()
    copy.write()
    copy.run(writers=3)
    copy.check()


def test_f93_an_older_copy_of_the_checkpoint_is_refused(copy: Copy) -> None:
    copy.write()
    copy.run()
    shutil.copytree(copy.checkpoint, copy.directory / "older")
    for _ in range(2):
        copy.write()
        copy.run()
    shutil.rmtree(copy.checkpoint)
    shutil.copytree(copy.directory / "older", copy.checkpoint)
    with pytest.raises(JobFailed, match="up to number 2, and the checkpoint is at number 1"):
        copy.run()
    copy.check()


def test_f93_lost_entries_of_the_checkpoint_are_noticed(copy: Copy) -> None:
    """The last micro-batch is planned again, with other offsets than those that were committed."""
    for _ in range(2):
        copy.write()
        copy.run()
    for log in ("offsets", "commits"):
        (copy.checkpoint / log / "1").unlink()
        (copy.checkpoint / log / ".1.crc").unlink()
    records.produce(copy.bootstrap, copy.topics[0], [b"20"])
    with pytest.raises(JobFailed, match="micro-batch 1 was committed with other source offsets"):
        copy.run()
    copy.check()


def test_a_sink_has_at_most_one_writer_per_partition(copy: Copy) -> None:
    copy.write()
    with pytest.raises(JobFailed, match="has 2 partitions, and the sink has 3 writers"):
        copy.run(writers=3)
    with pytest.raises(JobFailed, match="have a column named value"):
        copy.run(columns=("key",))  # type: ignore[arg-type]
