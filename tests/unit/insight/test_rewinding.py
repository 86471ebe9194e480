"""A partition at an earlier moment, from the events up to then."""

from typing import Any

import pytest

from tidelog.insight.explanation import explain
from tidelog.insight.rewinding import as_lanes, partition_at, past_events
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError

ORDERS = TopicPartition("orders", 0)
ALL = [1, 2, 3]


def event(ts: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"v": 1, "event": kind, "ts": ts, "node": 1, **fields}


def of_partition(ts: int, kind: str, **fields: Any) -> dict[str, Any]:
    common = {"topic": "orders", "partition": 0, "replicas": ALL, "min_isr": 2}
    return event(ts, kind, **{**common, **fields})


def elected(ts: int, leader: int, epoch: int, isr: list[int], reason: str) -> dict[str, Any]:
    return of_partition(
        ts,
        "leader_elected",
        leader=leader,
        leader_before=-1,
        leader_epoch=epoch,
        partition_epoch=epoch,
        isr=isr,
        elr=[],
        clean=True,
        reason=reason,
    )


def state(ts: int, leader: int, epoch: int, ends: dict[int, int], high_watermark: int) -> Any:
    followers = [
        {"broker": one, "end_offset": end, "lag": 0, "lag_ms": 0, "in_sync": True}
        for one, end in ends.items()
        if one != leader
    ]
    return of_partition(
        ts,
        "replica_state",
        leader=leader,
        leader_epoch=epoch,
        high_watermark=high_watermark,
        log_start_offset=0,
        end_offset=ends[leader],
        isr=sorted(ends),
        followers=followers,
    )


EVENTS = [
    elected(1_000, 1, 0, ALL, "created"),
    state(2_000, 1, 0, {1: 10, 2: 10, 3: 8}, 8),
    event(3_000, "broker_fenced", broker=1, broker_epoch=5, reason="connection-refused"),
    elected(3_001, 2, 1, [2, 3], "dead"),
    of_partition(
        3_001,
        "isr_shrink",
        leader=2,
        leader_epoch=1,
        partition_epoch=1,
        isr_before=ALL,
        isr=[2, 3],
        left=[{"broker": 1, "reason": "dead", "end_offset": None, "lag_ms": None}],
        leader_end_offset=None,
        high_watermark=None,
    ),
    state(4_000, 2, 1, {2: 15, 3: 15}, 15),
]


def test_a_moment_shows_the_leader_and_the_offsets_of_then() -> None:
    then = as_lanes(partition_at(EVENTS, 2_500))

    assert (then["leader"], then["epoch"], then["high_watermark"]) == (1, 0, 8)
    assert [(one["id"], one["end"], one["lag"]) for one in then["replicas"]] == [
        (1, 10, 0),
        (2, 10, 0),
        (3, 8, 2),
    ]


def test_after_a_failover_the_dead_replica_has_no_end_and_the_epoch_begins_at_the_longest() -> None:
    later = as_lanes(partition_at(EVENTS, 9_000))

    assert (later["leader"], later["epochs"]) == (2, [(0, 0), (1, 10)])
    assert [(one["id"], one["end"], one["in_sync"]) for one in later["replicas"]] == [
        (1, None, False),
        (2, 15, True),
        (3, 15, True),
    ]


def test_the_explanation_is_that_of_the_moment() -> None:
    before = list(explain(partition_at(EVENTS, 2_500).facts(ORDERS, 2_500)))
    after = "\n".join(explain(partition_at(EVENTS, 3_500).facts(ORDERS, 3_500)))

    assert before[0].startswith("orders-0 is healthy: broker 1 leads")
    assert "orders-0 is under-replicated" in after
    assert "Broker 1 left the in-sync set" in after


def test_every_change_is_one_sentence() -> None:
    assert [one.text for one in past_events(EVENTS)] == [
        "Broker 1 was elected leader in epoch 0 (created).",
        "Broker 1 was fenced (connection-refused).",
        "Broker 2 was elected leader in epoch 1 (dead).",
        "Left the in-sync set: 1 (dead).",
    ]


def test_a_moment_before_all_events_is_refused() -> None:
    with pytest.raises(UserError, match="do not go back"):
        partition_at(EVENTS, 500)
