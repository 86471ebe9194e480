"""The report equals the output of kafka-metadata-quorum, including blanks and tabs."""

from uuid import UUID

from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

from tidelog.cli.output.quorum_report import replication, status
from tidelog.model.errors import ErrorCode

DIRECTORY = UUID(int=1)


def replica(node: int, end: int, caught_up: int, directory: UUID | None = None) -> ReplicaState:
    return ReplicaState(
        replica_id=node,
        replica_directory_id=directory,
        log_end_offset=end,
        last_fetch_timestamp=caught_up,
        last_caught_up_timestamp=caught_up,
    )


def quorum(*voters: ReplicaState, observer: ReplicaState | None = None) -> DescribeQuorumResponse:
    partition = PartitionData(
        partition_index=0,
        error_code=ErrorCode.none,
        error_message=None,
        leader_id=3,
        leader_epoch=4,
        high_watermark=28,
        current_voters=voters,
        observers=() if observer is None else (observer,),
    )
    return DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=None,
        topics=(TopicData(topic_name="__cluster_metadata", partitions=(partition,)),),
        nodes=tuple(
            Node(
                node_id=id_, listeners=(Listener(name="CONTROLLER", host="here", port=9000 + id_),)
            )
            for id_ in (1, 3)
        ),
    )


ANSWER = quorum(
    replica(1, 27, 1794781846148),
    replica(2, -1, -1),
    replica(3, 28, 1794781846390),
    observer=replica(7, 20, 1794781846000, DIRECTORY),
)


def test_status() -> None:
    assert list(status("udeV9ZY1T6OZ0-eOYDMqLw", ANSWER)) == [
        "ClusterId:              udeV9ZY1T6OZ0-eOYDMqLw",
        "LeaderId:               3",
        "LeaderEpoch:            4",
        "HighWatermark:          28",
        "MaxFollowerLag:         29",
        "MaxFollowerLagTimeMs:   -1",
        'CurrentVoters:          [{"id": 1, "endpoints": ["CONTROLLER://here:9001"]}, {"id": 2}, '
        '{"id": 3, "endpoints": ["CONTROLLER://here:9003"]}]',
        'CurrentObservers:       [{"id": 7, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ"}]',
    ]


def test_the_lag_in_time_is_that_of_the_voter_furthest_behind() -> None:
    lines = list(status("x", quorum(replica(1, 20, 1000), replica(3, 28, 1500))))
    assert lines[4:6] == ["MaxFollowerLag:         8", "MaxFollowerLagTimeMs:   500"]
    lines = list(status("x", quorum(replica(3, 28, 1500))))
    assert lines[4:6] == ["MaxFollowerLag:         0", "MaxFollowerLagTimeMs:   0"]


def test_replication() -> None:
    assert list(replication(ANSWER, None)) == [
        "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\t"
        "LastCaughtUpTimestamp\tStatus  \t",
        "3     \tAAAAAAAAAAAAAAAAAAAAAA\t28          \t0  \t1794781846390     \t"
        "1794781846390        \tLeader  \t",
        "1     \tAAAAAAAAAAAAAAAAAAAAAA\t27          \t1  \t1794781846148     \t"
        "1794781846148        \tFollower\t",
        "2     \tAAAAAAAAAAAAAAAAAAAAAA\t-1          \t29 \t-1                \t"
        "-1                   \tFollower\t",
        "7     \tAAAAAAAAAAAAAAAAAAAAAQ\t20          \t8  \t1794781846000     \t"
        "1794781846000        \tObserver\t",
    ]


def test_times_for_people_are_ages() -> None:
    _, leader, follower, silent, _ = replication(ANSWER, 1794781846400)
    assert leader.split("\t")[4].rstrip() == "10 ms ago"
    assert follower.split("\t")[5].rstrip() == "252 ms ago"
    assert silent.split("\t")[4].rstrip() == "-1"
