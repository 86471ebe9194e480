"""The state of replicas, collected from the events of a topic."""

from typing import Any

from tidelog.insight.replica_history import (
    BrokerStanding,
    FollowerHistory,
    IsrMembership,
    Loss,
    ReplicaHistory,
)
from tidelog.model.ids import TopicPartition

WHERE = TopicPartition("orders", 0)


def history(*events: dict[str, Any]) -> ReplicaHistory:
    known = ReplicaHistory()
    for ts, event in enumerate(events, 100):
        known.note({"v": 1, "ts": ts, "node": 1, **event})
    return known


def of_partition(event: str, **fields: Any) -> dict[str, Any]:
    return {"event": event, "topic": "orders", "partition": 0, **fields}


def elected(isr: list[int], **fields: Any) -> dict[str, Any]:
    given = {"leader": 1, "leader_before": -1, "reason": "created", "clean": True, **fields}
    return of_partition("leader_elected", isr=isr, **given)


def shrunk(broker: int, **fields: Any) -> dict[str, Any]:
    left = {"broker": broker, "reason": "slow", "end_offset": 70, "lag_ms": 900}
    return of_partition("isr_shrink", left=[left], leader_end_offset=100, **fields)


def state(broker: int, **fields: Any) -> dict[str, Any]:
    follower = {"broker": broker, "end_offset": 70, "lag": 30, "lag_ms": 900, "in_sync": True}
    return of_partition(
        "replica_state", leader=1, high_watermark=70, followers=[follower], **fields
    )


def test_a_member_is_in_since_it_joined_and_out_since_it_left() -> None:
    known = history(
        elected([1, 2, 3]),
        shrunk(2),
        of_partition("isr_expand", joined=[2]),
        shrunk(3),
        elected([1, 2], reason="preferred"),
    ).of(WHERE)

    assert known.members == {
        1: IsrMembership(True, 100),
        2: IsrMembership(True, 102),
        3: IsrMembership(False, 103, "slow", 70, 900, 30),
    }
    assert known.election is not None
    assert (known.election.at, known.election.reason) == (104, "preferred")


def test_a_topic_that_was_made_anew_forgets_the_one_before() -> None:
    known = history(elected([1, 2, 3]), shrunk(3), elected([4]))
    assert known.of(WHERE).members == {4: IsrMembership(True, 102)}


def lost(from_offset: int, to_offset: int, **fields: Any) -> dict[str, Any]:
    return of_partition("unclean_loss", from_offset=from_offset, to_offset=to_offset, **fields)


def test_what_a_follower_knew_of_a_loss_takes_nothing_from_what_its_leader_knew() -> None:
    known = history(elected([1, 2]), lost(100, 40), lost(45, 40, node=2)).of(WHERE)
    assert known.losses == [Loss(101, 100, 40)]

    reported_by_three = history(lost(50, 40), lost(90, 80), lost(85, 45)).of(WHERE)
    assert reported_by_three.losses == [Loss(100, 90, 40)]


def test_two_losses_are_two() -> None:
    known = history(lost(100, 40), lost(200, 180)).of(WHERE)
    assert known.losses == [Loss(100, 100, 40), Loss(101, 200, 180)]


def test_a_topic_that_was_made_anew_has_lost_nothing_and_has_no_old_followers() -> None:
    known = history(elected([1, 2]), lost(100, 40), state(2), elected([1, 2])).of(WHERE)
    assert (known.losses, known.followers) == ([], {})

    reported_before_its_beginning = state(2, ts=200), elected([1, 2], ts=150)
    assert list(history(*reported_before_its_beginning).of(WHERE).followers) == [2]


def test_a_broker_is_as_it_was_told_of_last() -> None:
    fenced = {"event": "broker_fenced", "broker": 2, "reason": "session-expired"}
    back = {"event": "broker_unfenced", "broker": 2, "reason": "returned"}
    assert history(fenced).brokers[2] == BrokerStanding(True, 100, "session-expired")
    assert history(fenced, back).brokers[2] == BrokerStanding(False, 101, "returned")


def test_a_follower_is_as_its_leader_told_of_it_last() -> None:
    known = history(state(2), state(3)).of(WHERE)
    assert known.followers == {3: FollowerHistory(101, 1, 70, 30, 900, True)}
    assert known.followers[3].leader_end == 100
    assert FollowerHistory(101, 1, None, None, None, True).leader_end is None


def test_events_of_a_later_version_are_passed_over() -> None:
    known = history({"event": "moon_rises"}, of_partition("tide_turns"))
    assert known.of(WHERE).members == {}


def test_what_is_told_late_changes_nothing_that_came_after_it() -> None:
    """The controller and the leader write events independently, so these may be out of order."""
    reported_late = elected([1, 2, 3], partition_epoch=0, ts=90)
    known = history(shrunk(2, partition_epoch=1), reported_late).of(WHERE)
    assert not known.members[2].is_in_sync
    assert known.members[3] == IsrMembership(True, 90)

    joined = of_partition("isr_expand", joined=[2], partition_epoch=2)
    preferred = elected([1, 3], leader=3, reason="preferred", partition_epoch=1)
    known = history(elected([1, 3], partition_epoch=0), joined, shrunk(2, partition_epoch=1)).of(
        WHERE
    )
    assert known.members[2] == IsrMembership(True, 101)
    dead = elected([1], leader=1, reason="dead", partition_epoch=2)
    known = history(elected([1, 3], partition_epoch=0), dead, preferred).of(WHERE)
    assert known.election is not None
    assert known.election.reason == "dead"


def test_whoever_only_looks_knows_no_epochs_and_tells_in_order() -> None:
    """`tidelog observe` writes -1 as the partition epoch."""
    known = history(
        elected([1, 2], partition_epoch=-1),
        shrunk(2, partition_epoch=-1),
        of_partition("isr_expand", joined=[2], partition_epoch=-1),
    ).of(WHERE)
    assert known.members[2] == IsrMembership(True, 102)
