"""AssignReplicasToDirs: the directories of a broker's replicas, and the loss of a directory."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.unit.controller.support import after, ask, cluster, directory, partition

from tidelog.controller.image.image import LOST_DIRECTORY, ClusterImage, PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

TOPIC_ID = UUID(int=0xA0)
SECOND, REPLACED = UUID(int=6_001), UUID(int=6_002)


def two_directories(placed: PartitionImage | None = None) -> ClusterImage:
    """Broker 1 has two directories; its replica of the only partition is in the first."""
    image = cluster(3, {"t": partition() if placed is None else placed})
    one = replace(image.brokers[1], directories=(directory(1), SECOND))
    return replace(image, brokers={**image.brokers, 1: one})


def assignment(
    where: UUID,
    *,
    broker: int = 1,
    epoch: int | None = None,
    topic: UUID = TOPIC_ID,
    index: int = 0,
) -> AssignReplicasToDirsRequest:
    partitions = (PartitionData(partition_index=index),)
    topics = (TopicData(topic_id=topic, partitions=partitions),)
    return AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=100 + broker if epoch is None else epoch,
        directories=(DirectoryData(id_=where, topics=topics),),
    )


def placed_in(image: ClusterImage) -> PartitionImage:
    return image.topics["t"].partitions[0]


def test_a_move_to_another_directory_changes_nothing_else() -> None:
    image = two_directories()
    decision = ask(image, assignment(SECOND))
    moved = placed_in(after(image, decision))
    assert moved.directories == (SECOND, directory(2), directory(3))
    assert (moved.leader, moved.isr, moved.leader_epoch) == (1, (1, 2, 3), 5)
    answer = decision.response.directories[0]
    assert (answer.id_, answer.topics[0].partitions[0].error_code) == (SECOND, ErrorCode.none)


def test_what_is_known_already_is_no_record() -> None:
    assert ask(two_directories(), assignment(directory(1))).records == ()


@pytest.mark.parametrize("where", [LOST_DIRECTORY, REPLACED])
def test_f33_a_replica_in_a_lost_directory_leads_no_more_and_is_not_in_sync(where: UUID) -> None:
    image = two_directories()
    lost = placed_in(after(image, ask(image, assignment(where))))
    assert (lost.leader, lost.isr, lost.leader_epoch) == (2, (2, 3), 6)


def test_f15_fetches_from_before_a_follower_lost_records_are_not_counted_any_more() -> None:
    """Otherwise a fetch in flight would add the follower to the in-sync set again too early."""
    image = two_directories(partition(leader=2))
    lost = placed_in(after(image, ask(image, assignment(REPLACED))))
    assert (lost.leader, lost.isr, lost.leader_epoch) == (2, (2, 3), 6)
    again = after(image, ask(image, assignment(REPLACED)))
    back = placed_in(after(again, ask(again, assignment(directory(1)))))
    assert (back.leader, back.isr, back.leader_epoch) == (2, (2, 3), 6)


def test_a_follower_in_a_failed_directory_leaves_the_leader_epoch_as_it_is() -> None:
    image = two_directories(partition(leader=2))
    lost = placed_in(after(image, ask(image, assignment(LOST_DIRECTORY))))
    assert (lost.leader, lost.isr, lost.leader_epoch) == (2, (2, 3), 5)


def test_f33_a_lost_directory_takes_its_replicas_and_leaves_the_others() -> None:
    image = two_directories()
    request = BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=101,
        current_metadata_offset=1_000,
        want_fence=False,
        want_shut_down=False,
        offline_log_dirs=(SECOND,),
    )
    unharmed = after(image, ask(image, request))
    assert placed_in(unharmed) == placed_in(image)
    assert unharmed.brokers[1].directories == (directory(1),)
    image = two_directories(partition(directories=(SECOND, directory(2), directory(3))))
    lost = placed_in(after(image, ask(image, request)))
    assert (lost.leader, lost.isr) == (2, (2, 3))


def test_a_replica_on_a_new_disk_is_not_the_last_known_leader_any_more() -> None:
    """Otherwise the replica would lead with an empty log, and the others would truncate theirs."""
    placed = partition(
        isr=(), leader=-1, last_known_elr=(1,), directories=(REPLACED, directory(2), directory(3))
    )
    image = two_directories(placed)
    begun_anew = placed_in(after(image, ask(image, assignment(SECOND))))
    assert begun_anew.leader == -1
    assert begun_anew.last_known_elr == ()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"topic": UUID(int=0xB0)}, ErrorCode.unknown_topic_id),
        ({"index": 1}, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_what_is_not_there_is_told_so(changes: dict[str, int], error: ErrorCode) -> None:
    decision = ask(two_directories(), assignment(SECOND, **changes))
    assert decision.records == ()
    answer = decision.response.directories[0].topics[0].partitions[0]
    assert answer.error_code is error


def test_a_broker_without_a_replica_assigns_nothing() -> None:
    decision = ask(cluster(4, {"t": partition()}), assignment(directory(4), broker=4))
    answer = decision.response.directories[0].topics[0].partitions[0]
    assert answer.error_code is ErrorCode.not_leader_or_follower


def test_an_earlier_run_of_the_broker_is_not_heard() -> None:
    decision = ask(two_directories(), assignment(SECOND, epoch=77))
    assert decision.records == ()
    assert decision.response.error_code is ErrorCode.stale_broker_epoch
