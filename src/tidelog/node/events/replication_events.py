"""Collects the replication events of this node, counts them and writes them to their topic.

Invariant: recording an event never blocks. The events of a controller's decision are derived
afterwards, at most `PER_SLICE` at a time. The queue is bounded. If the topic cannot be written, the
oldest events are dropped, counted and logged. Events about the event topic itself are recorded too,
except for its replica states. Each written event changes these states, so recording them would
never end.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.controller.replication_events import events_of_decision
from tidelog.model.ids import Millis
from tidelog.model.replication_events import (
    FenceReason,
    LeaderElected,
    ReplicationEvent,
    encode_event,
    key_of,
)
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Submit
from tidelog.node.events.counters import Counters
from tidelog.node.events.event_producer import EventProducer
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Peers
from tidelog.protocol.records.records import Record

LIMIT = 10_000
"""The maximum number of events that wait to be written, about 5 MB."""
PER_SLICE = 200
PAUSE_MS: Millis = 5
"""The pause between two slices, in which the node does other work."""
SLICE_BYTES = 512 * 1024
"""The size at which a batch of events is full: half of the default max.message.bytes."""
LINGER_MS: Millis = 20
"""Events that occur within this time are written in one batch."""
DRAIN_MS: Millis = 500
"""The maximum time that a stopping node waits until its events are written."""

log = logging.getLogger(__name__)


class ReplicationEvents:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        peers: Peers,
        current: CurrentImage,
        submit: Submit,
    ) -> None:
        self.counters = Counters()
        self.is_on = settings.tidelog_replication_events_enable
        self._settings = settings
        self._clock = clock
        self._timers = clock.timers
        self._producer = EventProducer(settings, clock, peers, current, submit)
        self._decisions: deque[tuple[Millis, Millis, Iterator[ReplicationEvent]]] = deque()
        """For each decision: its commit time, how long the commit took, and its events."""
        self._waiting: deque[tuple[Millis, ReplicationEvent]] = deque()
        self._is_sending = False
        self._is_slicing = False
        self._lost = 0
        self._after: Callable[[], None] | None = None

    def decided(
        self,
        before: ClusterImage,
        after: ClusterImage,
        took_ms: Millis,
        why: FenceReason,
        last_sign: Millis | None = None,
    ) -> None:
        """Record the events of a committed decision, which changed the image from `before` to
        `after`.

        If the decision fences a broker, `last_sign` is the time of that broker's last sign of life.
        """
        silent_ms = None if last_sign is None else self._clock.now - last_sign
        events = events_of_decision(before, after, self._settings, why, silent_ms)
        self._decisions.append((self._clock.wall, took_ms, events))
        self._slice_soon()

    def record(self, event: ReplicationEvent) -> None:
        """Record an event that happens now."""
        self._enqueue(self._clock.wall, event)

    def drain(self, then: Callable[[], None]) -> None:
        """Wait until all events are written, but at most `DRAIN_MS`.

        Then call `then`, which ends the node.
        """
        self._after = then
        self._timers.at(self._clock.now + DRAIN_MS, self._end)
        self._maybe_end()

    def _maybe_end(self) -> None:
        if not self._decisions and not self._is_sending:
            self._end()

    def _end(self) -> None:
        after, self._after = self._after, None
        if after is not None:
            after()

    # -- decisions, a slice at a time --------------------------------------------------------------

    def _slice_soon(self) -> None:
        if self._decisions and not self._is_slicing:
            self._is_slicing = True
            self._timers.at(self._clock.now + PAUSE_MS, self._slice)

    def _slice(self) -> None:
        self._is_slicing = False
        ts, took_ms, events = self._decisions[0]
        some = list(islice(events, PER_SLICE))
        for event in some:
            if isinstance(event, LeaderElected):
                self.counters.elections += 1
                self.counters.election_ms += took_ms
                if not event.clean:
                    self.counters.unclean_elections += 1
                    _warn(event)
            self._enqueue(ts, event)
        if len(some) < PER_SLICE:
            self._decisions.popleft()
        self._slice_soon()
        self._maybe_end()

    # -- the queue ---------------------------------------------------------------------------------

    def _enqueue(self, ts: Millis, event: ReplicationEvent) -> None:
        if not self.is_on:
            return
        if len(self._waiting) == LIMIT:
            self._waiting.popleft()
            self._lose(1)
        self._waiting.append((ts, event))
        if not self._is_sending:
            self._is_sending = True
            self._timers.at(self._clock.now + LINGER_MS, self._send)

    def _send(self) -> None:
        node = self._settings.node_id
        records: list[Record] = []
        room = min(SLICE_BYTES, self._settings.socket_request_max_bytes // 2)
        while self._waiting and len(records) < PER_SLICE and (room > 0 or not records):
            ts, event = self._waiting.popleft()
            key, value = key_of(event), encode_event(event, ts, node)
            records.append(Record(key, value, ts))
            room -= len(key) + len(value)
        self._producer.send(records, lambda is_written: self._sent(len(records), is_written))

    def _sent(self, count: int, is_written: bool) -> None:
        if is_written:
            self.counters.events_written += count
            if self._lost:
                log.warning("%d earlier replication events were dropped", self._lost)
                self._lost = 0
        else:
            self._lose(count)
        if self._waiting:
            self._timers.at(self._clock.now + PAUSE_MS, self._send)
        else:
            self._is_sending = False
            self._maybe_end()

    def _lose(self, count: int) -> None:
        if not self._lost:
            log.warning("replication events are being dropped: their topic cannot be written")
        self._lost += count
        self.counters.events_lost += count


def _warn(event: LeaderElected) -> None:
    log.warning(
        "%s: leader %d was elected uncleanly in epoch %d: committed records may be lost",
        event.partition,
        event.leader,
        event.leader_epoch,
    )
