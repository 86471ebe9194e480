"""The queue of replication events has a limit, counts dropped events, and never blocks the node."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.controller.support import broker, cluster, partition, settings
from tests.unit.log.support import NOW

from tidelog.controller.image.image import RECOVERED, RECOVERING
from tidelog.model.ids import TopicPartition
from tidelog.model.outbound import Outbound
from tidelog.model.replication_events import (
    BrokerFenced,
    FenceReason,
    LeaveReason,
    Left,
    ReplicationEvent,
    UncleanLoss,
    encode_event,
    key_of,
)
from tidelog.node.clock import Clock
from tidelog.node.events.replication_events import DRAIN_MS, LIMIT, PER_SLICE, ReplicationEvents
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Peers
from tidelog.node.ready import ReadyQueue


class EventsHost:
    """A node's `ReplicationEvents`, in a cluster whose replication-events topic has no leader."""

    def __init__(self, is_on: str = "true") -> None:
        self.clock, self.ready = Clock(NOW), ReadyQueue()
        self.outbound: list[Outbound] = []
        current = CurrentImage()
        current.image = cluster()
        self.events = ReplicationEvents(
            settings({"tidelog.replication.events.enable": is_on}),
            self.clock,
            Peers(self.clock, self.ready, self.outbound.append),
            current,
            self._submit,
        )

    def _submit(
        self, message: Any, resume: Callable[[Any], None], patience_ms: int | None = None
    ) -> None: ...

    def wait(self, ms: int) -> None:
        end = self.clock.now + ms
        while (deadline := self.clock.timers.next_deadline()) is not None and deadline <= end:
            self.clock.now = deadline
            self.clock.timers.fire(deadline, self.ready.run)
        self.clock.now = end


def loss(offset: int) -> UncleanLoss:
    return UncleanLoss(partition=TopicPartition("a", 0), from_offset=offset, to_offset=0)


def test_over_the_limit_the_oldest_events_go_and_are_counted() -> None:
    host = EventsHost()
    for offset in range(LIMIT + 5):
        host.events.record(loss(offset))
    assert host.events.counters.events_lost == 5

    host.wait(5_000)

    assert host.events.counters.events_lost == 5
    assert host.events.counters.events_written == 0


def test_when_it_is_off_nothing_waits_but_elections_are_counted() -> None:
    host = EventsHost("false")
    before = cluster(3, {"orders": partition()})
    after = cluster(
        [broker(1, fenced=True), broker(2), broker(3)],
        {"orders": partition(leader=2, isr=(2, 3), leader_epoch=6, partition_epoch=8)},
    )

    host.events.decided(before, after, 12, FenceReason.SESSION_EXPIRED)
    host.events.record(loss(1))
    host.wait(1_000)

    counters = host.events.counters
    assert (counters.elections, counters.election_ms, counters.unclean_elections) == (1, 12, 0)
    assert (counters.events_lost, host.outbound, host.clock.timers.next_deadline()) == (0, [], None)


@pytest.mark.parametrize(
    ("before", "leader", "recovery", "unclean"),
    [
        pytest.param({"isr": (1,)}, 3, RECOVERING, 1, id="out of sync"),
        pytest.param({"isr": (1,), "elr": (3,)}, 3, RECOVERED, 0, id="eligible"),
        pytest.param({"isr": (1, 3)}, 3, RECOVERED, 0, id="in sync"),
        pytest.param({"isr": (1,), "adding": (3,)}, 3, RECOVERED, 0, id="reassigned"),
    ],
)
def test_f35_only_an_election_that_may_lose_records_is_counted_as_unclean(
    before: dict[str, Any], leader: int, recovery: int, unclean: int
) -> None:
    host = EventsHost("false")
    after = partition(
        leader=leader,
        isr=(leader,),
        leader_epoch=6,
        partition_epoch=8,
        leader_recovery_state=recovery,
    )

    host.events.decided(
        cluster(3, {"orders": partition(**before)}),
        cluster([broker(1, fenced=True), broker(2), broker(3)], {"orders": after}),
        0,
        FenceReason.SESSION_EXPIRED,
    )
    host.wait(1_000)

    counters = host.events.counters
    assert (counters.elections, counters.unclean_elections) == (1, unclean)


def test_a_decision_about_many_partitions_is_told_a_slice_at_a_time() -> None:
    host = EventsHost("false")
    count = 3 * PER_SLICE
    after = cluster(3, {"orders": [partition() for _ in range(count)]})
    seen = []

    host.events.decided(cluster(3), after, 0, FenceReason.REQUESTED)
    while (deadline := host.clock.timers.next_deadline()) is not None:
        host.wait(deadline - host.clock.now)
        seen.append(host.events.counters.elections)

    assert seen == [PER_SLICE, 2 * PER_SLICE, count, count]


def test_a_node_that_ends_waits_for_its_events_but_not_for_long() -> None:
    ended: list[int] = []
    idle = EventsHost()
    idle.events.drain(lambda: ended.append(idle.clock.now))
    assert ended == [NOW]

    busy = EventsHost()
    busy.events.record(loss(1))
    busy.events.drain(lambda: ended.append(busy.clock.now))
    busy.wait(10_000)
    assert ended == [NOW, NOW + DRAIN_MS]


def as_json(event: ReplicationEvent) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode_event(event, NOW, 3))
    return decoded


def test_an_event_is_one_json_object_with_its_key() -> None:
    fenced = BrokerFenced(broker=2, broker_epoch=9, reason=FenceReason.SESSION_EXPIRED)
    assert (key_of(fenced), key_of(loss(1))) == (b"broker-2", b"a-0")
    assert as_json(fenced) == {
        "v": 1,
        "event": "broker_fenced",
        "ts": NOW,
        "node": 3,
        "broker": 2,
        "broker_epoch": 9,
        "reason": "session-expired",
        "silent_ms": None,
    }
    assert as_json(loss(4)) == {
        "v": 1,
        "event": "unclean_loss",
        "ts": NOW,
        "node": 3,
        "topic": "a",
        "partition": 0,
        "from_offset": 4,
        "to_offset": 0,
    }
    assert Left(2, LeaveReason.SLOW, 5, 7)._asdict() == {
        "broker": 2,
        "reason": "slow",
        "end_offset": 5,
        "lag_ms": 7,
    }
