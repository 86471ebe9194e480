"""DescribeLogDirs: the log directories of this broker and their partitions."""

from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.admin import log_dirs
from tidelog.model.effects import DescribedDirectory, DescribeDirectories, ReplicaOnDisk
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition


def test_null_asks_for_every_partition():
    effects = Effects([])

    effects.drive(log_dirs.handle(request(ask(35, topics=None), 5)))

    assert effects.asked == [DescribeDirectories(None)]


def test_partitions_asked_for():
    effects = Effects([])
    topics = (DescribableLogDirTopic(topic="a", partitions=(0, 2)),)

    effects.drive(log_dirs.handle(request(ask(35, topics=topics), 5)))

    assert effects.asked == [
        DescribeDirectories(frozenset({TopicPartition("a", 0), TopicPartition("a", 2)}))
    ]


def test_replicas_are_grouped_by_topic():
    directory = DescribedDirectory(
        ErrorCode.none,
        "/logs",
        (
            ReplicaOnDisk(TopicPartition("b", 0), 10, 0),
            ReplicaOnDisk(TopicPartition("a", 1), 20, 5),
            ReplicaOnDisk(TopicPartition("a", 0), 30, 0),
        ),
        total_bytes=1000,
        usable_bytes=400,
    )

    response = drive(log_dirs.handle(request(ask(35, topics=None), 5)), [directory])

    [result] = response.results
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == ("/logs", 1000, 400)
    assert {
        topic.name: [(p.partition_index, p.partition_size, p.offset_lag) for p in topic.partitions]
        for topic in result.topics
    } == {"a": [(0, 30, 0), (1, 20, 5)], "b": [(0, 10, 0)]}


def test_a_failed_directory_says_so():
    failed = DescribedDirectory(ErrorCode.kafka_storage_error, "/logs", ())

    [result] = drive(log_dirs.handle(request(ask(35, topics=None), 5)), [failed]).results

    assert result.error_code is ErrorCode.kafka_storage_error
