"""The events of one decision. Their reasons come from the images before and after the decision."""

from collections.abc import Iterable
from typing import Any

import pytest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState
from kio.schema.alter_partition.v3.request import PartitionData as Wish
from kio.schema.alter_partition.v3.request import TopicData as WishOfTopic
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.unit.controller.support import (
    SETTINGS,
    TIMEOUT,
    ask,
    broker,
    cluster,
    context,
    directory,
    min_isr,
    partition,
)

from tidelog.controller.decide import elections
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import RECOVERING, TOPIC_RESOURCE, ClusterImage
from tidelog.controller.replication_events import events_of_decision
from tidelog.model.ids import TopicPartition
from tidelog.model.replication_events import (
    BrokerFenced,
    BrokerUnfenced,
    ElectionReason,
    FenceReason,
    IsrShrunk,
    LeaderElected,
    LeaveReason,
    Left,
    ReplicationEvent,
)
from tidelog.protocol.metadata.metadata_records import MetadataRecord

ORDERS = TopicPartition("orders", 0)


def events_of(
    image: ClusterImage,
    records: Iterable[MetadataRecord],
    why: FenceReason = FenceReason.REQUESTED,
    silent_ms: int | None = None,
) -> list[ReplicationEvent]:
    after = apply_all(image, list(records), image.offset + 1, image.epoch)
    return list(events_of_decision(image, after, SETTINGS, why, silent_ms))


def three(**changes: Any) -> ClusterImage:
    return cluster(3, {"orders": partition(**changes)}, min_isr("orders", 2))


@pytest.mark.parametrize("why", [FenceReason.SESSION_EXPIRED, FenceReason.CONNECTION_REFUSED])
def test_a_leader_that_is_fenced_is_dead(why: FenceReason) -> None:
    image = three()

    fenced, shrunk, elected = events_of(
        image, elections.fence(image, image.brokers[1], context(image)), why, 2_001
    )

    assert fenced == BrokerFenced(broker=1, broker_epoch=101, reason=why, silent_ms=2_001)
    assert shrunk == IsrShrunk(
        partition=ORDERS,
        leader=2,
        leader_epoch=6,
        partition_epoch=8,
        isr_before=(1, 2, 3),
        isr=(2, 3),
        left=(Left(1, LeaveReason.DEAD),),
        replicas=(1, 2, 3),
        min_isr=2,
    )
    assert isinstance(elected, LeaderElected)
    assert (elected.leader, elected.leader_before, elected.clean, elected.reason) == (
        2,
        1,
        True,
        "dead",
    )


def test_a_follower_that_is_fenced_leaves_and_nobody_is_elected() -> None:
    image = three()

    kinds = [
        one.kind for one in events_of(image, elections.fence_expired(image, [3], context(image)))
    ]

    assert kinds == ["broker_fenced", "isr_shrink"]


def test_a_leader_that_shuts_down_says_so_and_is_fenced_for_it() -> None:
    image = three()
    shrunk, elected = events_of(
        image, elections.begin_shutdown(image, image.brokers[1], context(image))
    )
    assert isinstance(shrunk, IsrShrunk)
    assert isinstance(elected, LeaderElected)
    assert (shrunk.left, elected.reason) == ((Left(1, LeaveReason.SHUTTING_DOWN),), "shutting-down")

    stopping = cluster([broker(1, in_controlled_shutdown=True), broker(2)])
    (fenced,) = events_of(
        stopping, elections.fence(stopping, stopping.brokers[1], context(stopping))
    )
    assert fenced == BrokerFenced(broker=1, broker_epoch=101, reason=FenceReason.SHUTTING_DOWN)


def test_a_failed_directory_is_neither_death_nor_slowness() -> None:
    image = cluster(
        [broker(1, directories=(directory(1), directory(9))), broker(2), broker(3)],
        {"orders": partition()},
    )
    lost = elections.lose_directories(
        image, image.brokers[1], frozenset({directory(1)}), context(image)
    )

    shrunk, elected = events_of(image, lost)

    assert isinstance(shrunk, IsrShrunk)
    assert isinstance(elected, LeaderElected)
    assert (shrunk.left[0].reason, elected.reason) == ("log-dir-failed", "log-dir-failed")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({"leader": -1, "isr": (), "elr": (1,)}, ("returned", True, 1)),
        ({"leader": -1, "isr": (), "last_known_elr": (1,)}, ("unclean", False, 1)),
        ({"leader": 2, "isr": (1, 2, 3)}, ("preferred", True, 1)),
        # F35: the mark of an earlier unclean election does not make a later one unclean.
        (
            {"leader": 2, "isr": (1, 2, 3), "leader_recovery_state": RECOVERING},
            ("preferred", True, 1),
        ),
        (
            {"leader": -1, "isr": (), "elr": (1,), "leader_recovery_state": RECOVERING},
            ("returned", True, 1),
        ),
    ],
)
def test_f35_why_somebody_leads_and_whether_that_was_clean(
    before: dict[str, Any], expected: tuple[str, bool, int]
) -> None:
    image = three(**before)
    located = (image.topics["orders"], 0, image.topics["orders"].partitions[0])
    record = elections.elect(image, located, elections.Election.PREFERRED, context(image))
    assert record is not None

    (elected,) = events_of(image, [record])

    assert isinstance(elected, LeaderElected)
    assert (elected.reason, elected.clean, elected.leader) == expected


def test_a_broker_is_unfenced_as_a_new_run_or_as_one_that_has_returned() -> None:
    image = cluster([broker(1, fenced=True)])
    records = elections.unfence(image, image.brokers[1], context(image))

    (new,) = events_of(image, records)
    (back,) = events_of(image, records, FenceReason.RETURNED)

    assert new == BrokerUnfenced(broker=1, broker_epoch=101, reason=FenceReason.REGISTERED)
    assert back == BrokerUnfenced(broker=1, broker_epoch=101, reason=FenceReason.RETURNED)


def test_what_the_leader_asked_for_is_the_leaders_to_tell() -> None:
    image = three()
    members = tuple(BrokerState(broker_id=id_, broker_epoch=100 + id_) for id_ in (1, 2))
    wish = Wish(
        partition_index=0,
        leader_epoch=5,
        new_isr_with_epochs=members,
        leader_recovery_state=0,
        partition_epoch=7,
    )
    topic = WishOfTopic(topic_id=image.topics["orders"].topic_id, partitions=(wish,))
    request = AlterPartitionRequest(broker_id=1, broker_epoch=101, topics=(topic,))
    decision = ask(image, request)

    assert decision.records
    assert events_of(image, decision.records) == []


def test_f35_a_reassignment_that_completes_with_a_new_leader_is_a_clean_election() -> None:
    """The election is clean although the new leader joins the in-sync set in the same decision."""
    image = cluster(
        3,
        {"orders": partition((1, 2), isr=(1,), leader=1, adding=(2,), removing=(1,))},
    )
    members = (
        BrokerState(broker_id=1, broker_epoch=101),
        BrokerState(broker_id=2, broker_epoch=102),
    )
    wish = Wish(
        partition_index=0,
        leader_epoch=5,
        new_isr_with_epochs=members,
        leader_recovery_state=0,
        partition_epoch=image.topics["orders"].partitions[0].partition_epoch,
    )
    topics = (WishOfTopic(topic_id=image.topics["orders"].topic_id, partitions=(wish,)),)
    decision = ask(image, AlterPartitionRequest(broker_id=1, broker_epoch=101, topics=topics))

    elected = [one for one in events_of(image, decision.records) if isinstance(one, LeaderElected)]

    assert [(one.leader, one.clean) for one in elected] == [(2, True)]


def test_f35_a_cancelled_reassignment_that_may_lose_records_is_an_unclean_election() -> None:
    under_way = partition((3, 1), isr=(3,), leader=3, adding=(3,), removing=(1,))
    image = cluster(
        3,
        {"orders": under_way},
        {(TOPIC_RESOURCE, "orders"): {"unclean.leader.election.enable": "true"}},
    )
    cancelled = ReassignablePartition(partition_index=0, replicas=None)
    topics = (ReassignableTopic(name="orders", partitions=(cancelled,)),)
    decision = ask(image, AlterPartitionReassignmentsRequest(timeout=TIMEOUT, topics=topics))

    elected = [one for one in events_of(image, decision.records) if isinstance(one, LeaderElected)]

    assert [(one.leader, one.clean, one.reason) for one in elected] == [
        (1, False, ElectionReason.UNCLEAN)
    ]
