"""DescribeLogDirs (key 35), versions 1-5, and AlterReplicaLogDirs (34), versions 1-2.

DescribeLogDirs lists this broker's log directories with the size and lag of each replica, and the
volume's size from version 4 on (KIP-827). If the list of topics is null, all partitions are listed.
A partition that is not on this broker is omitted. No directory is ever cordoned (version 5,
KIP-1066). AlterReplicaLogDirs starts moves between this broker's directories (KIP-113). During a
move, DescribeLogDirs lists the replica in both directories.
"""

from datetime import timedelta
from itertools import groupby

from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.describe_log_dirs.v5.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import PAUSE, Pace, chunks
from tidelog.model.effects import (
    DescribedDirectory,
    DescribeDirectories,
    MoveReplicas,
    ReplicaOnDisk,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

_SLICE = 2_000
_MOVES = 50
"""The maximum number of moves started in one slice. Each move opens a log."""


def handle(request: Request) -> Handling:
    """Lists the log directories and their replicas."""
    topics = request.message.topics
    wanted = None
    if topics is not None:
        wanted = frozenset(
            TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions
        )
    directories: list[DescribedDirectory] = yield DescribeDirectories(wanted)
    results: list[DescribeLogDirsResult] = []
    pace = Pace(_SLICE)
    for directory in directories:
        results.append((yield from _described(directory, pace)))
    return DescribeLogDirsResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        results=tuple(results),
    )


def _described(directory: DescribedDirectory, pace: Pace) -> Handling:
    topics: list[DescribeLogDirsTopic] = []
    by_topic = groupby(sorted(directory.replicas), key=lambda replica: replica.partition.topic)
    for name, replicas in by_topic:
        partitions: list[DescribeLogDirsPartition] = []
        for replica in replicas:
            partitions.append(_replica(replica))
            if pace.is_due():
                yield PAUSE
        topics.append(DescribeLogDirsTopic(name=name, partitions=tuple(partitions)))
    return DescribeLogDirsResult(
        error_code=directory.error,
        log_dir=directory.path,
        topics=tuple(topics),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )


def _replica(replica: ReplicaOnDisk) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=replica.partition.partition,
        partition_size=replica.size,
        offset_lag=replica.offset_lag,
        is_future_key=replica.is_future,
    )


def alter(request: Request) -> Handling:
    """Starts moves of replicas to other log directories of this broker."""
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.message.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    errors: list[ErrorCode] = []
    for moves in chunks(list(wanted.items()), _MOVES):
        if errors:
            yield PAUSE
        errors += yield MoveReplicas(list(moves))
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (topic, index), error in zip(wanted, errors, strict=True):
        results.setdefault(topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
        )
    return AlterReplicaLogDirsResponse(
        throttle_time=timedelta(0),
        results=tuple(
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=tuple(partitions))
            for topic, partitions in results.items()
        ),
    )
