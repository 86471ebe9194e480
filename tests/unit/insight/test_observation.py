"""The events that an observer derives from two successive states of a cluster."""

from dataclasses import replace

from tidelog.insight.observation import ClusterObserver, Look, PartitionLook
from tidelog.model.ids import TopicPartition
from tidelog.model.replication_events import (
    BrokerFenced,
    BrokerUnfenced,
    ElectionReason,
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    LeaveReason,
    ReplicaState,
    ReplicationEvent,
)

WHERE = TopicPartition("t", 0)
CALM = PartitionLook(
    leader=1,
    leader_epoch=4,
    isr=(1, 2, 3),
    replicas=(1, 2, 3),
    min_isr=2,
    high_watermark=100,
    log_start_offset=0,
    ends={1: 100, 2: 100, 3: 100},
)
ALL = frozenset({1, 2, 3})


def between(
    before: PartitionLook,
    after: PartitionLook,
    *,
    brokers_before: frozenset[int] = ALL,
    brokers: frozenset[int] = ALL,
) -> list[ReplicationEvent]:
    observer = ClusterObserver()
    observer.note(Look(1000, brokers_before, {WHERE: before}))
    return observer.note(Look(6000, brokers, {WHERE: after}))


def elections(events: list[ReplicationEvent]) -> list[tuple[int, int, ElectionReason, bool]]:
    return [
        (one.leader_before, one.leader, one.reason, one.clean)
        for one in events
        if isinstance(one, LeaderElected)
    ]


def test_the_first_look_tells_only_how_things_stand() -> None:
    (state,) = ClusterObserver().note(Look(1000, ALL, {WHERE: CALM}))

    assert isinstance(state, ReplicaState)
    assert (state.leader, state.isr, state.end_offset) == (1, (1, 2, 3), 100)
    assert [(one.broker, one.lag, one.lag_ms) for one in state.followers] == [(2, 0, 0), (3, 0, 0)]


def test_a_follower_that_stands_still_is_stuck_and_one_that_moves_is_slow() -> None:
    for end, reason in ((100, LeaveReason.STUCK), (150, LeaveReason.SLOW)):
        after = replace(CALM, isr=(1, 2), ends={1: 900, 2: 900, 3: end}, high_watermark=900)
        shrunk, state = between(CALM, after)
        assert isinstance(shrunk, IsrShrunk)
        assert [(one.broker, one.reason) for one in shrunk.left] == [(3, reason)]
        assert isinstance(state, ReplicaState)
        assert state.followers[1].lag == 900 - end
        assert state.followers[1].lag_ms == 5000


def test_a_dead_leader_is_followed_by_another() -> None:
    after = replace(CALM, leader=2, leader_epoch=5, isr=(2, 3), ends={2: 100, 3: 100})

    fenced, *rest = between(CALM, after, brokers=frozenset({2, 3}))

    assert isinstance(fenced, BrokerFenced)
    assert (fenced.broker, fenced.silent_ms) == (1, 5000)
    assert elections(rest) == [(1, 2, ElectionReason.DEAD, True)]
    (shrunk,) = [one for one in rest if isinstance(one, IsrShrunk)]
    assert [(one.broker, one.reason) for one in shrunk.left] == [(1, LeaveReason.DEAD)]


def test_a_leader_from_outside_the_in_sync_set_is_unclean() -> None:
    alone = replace(CALM, isr=(1,))
    after = replace(CALM, leader=3, leader_epoch=5, isr=(3,))

    events = between(alone, after, brokers=frozenset({2, 3}))

    assert elections(events) == [(1, 3, ElectionReason.UNCLEAN, False)]


def test_why_a_leader_moved_is_concluded_from_where_it_went() -> None:
    away = replace(CALM, leader=2, leader_epoch=5)
    assert elections(between(CALM, away)) == [(1, 2, ElectionReason.SHUTTING_DOWN, True)]
    back = replace(CALM, leader_epoch=6)
    assert elections(between(away, back)) == [(2, 1, ElectionReason.PREFERRED, True)]
    moved = replace(away, replicas=(2, 3, 4))
    assert elections(between(CALM, moved)) == [(1, 2, ElectionReason.REASSIGNED, True)]


def test_a_partition_without_a_leader_has_no_state_and_then_one_returns() -> None:
    nobody = replace(CALM, leader=-1, leader_epoch=5, ends={}, high_watermark=None)

    lost = between(CALM, nobody, brokers=frozenset())
    assert elections(lost) == [(1, -1, ElectionReason.DEAD, True)]
    assert not [one for one in lost if isinstance(one, ReplicaState)]

    found = between(nobody, replace(CALM, leader_epoch=6), brokers_before=frozenset())
    assert elections(found) == [(-1, 1, ElectionReason.RETURNED, True)]
    assert [one.broker for one in found if isinstance(one, BrokerUnfenced)] == [1, 2, 3]


def test_a_replica_that_is_back_and_a_topic_that_is_new_are_told() -> None:
    (expanded, _) = between(replace(CALM, isr=(1, 2)), CALM)
    assert isinstance(expanded, IsrExpanded)
    assert expanded.joined == (3,)

    observer = ClusterObserver()
    observer.note(Look(1000, ALL, {}))
    assert elections(observer.note(Look(2000, ALL, {WHERE: CALM}))) == [
        (-1, 1, ElectionReason.CREATED, True)
    ]
