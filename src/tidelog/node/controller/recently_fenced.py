"""Tracks brokers that have just failed, for metadata responses.

A client that loses its connection to a broker requests metadata at once, often before a new leader
is elected. If the response names the old leader, librdkafka waits about a second before it asks
again. Therefore, if a node has just lost its connection to a leader, responses that would name this
leader wait for the election, which takes about 20 ms.

A client forgets a broker that is missing from a response. librdkafka (at least in 2.16) also
forgets the new leaders of that broker's partitions, and waits a second again. Therefore, a fenced
broker is still listed for LISTED_MS. Kafka, with its default session timeout, lists a failed broker
for at least the same time.

Invariant: no response waits longer than PATIENCE_MS after the connection was lost, even if no new
leader is elected.
"""

from collections.abc import Collection, Iterable

from tidelog.controller.image.image import TopicImage
from tidelog.model.ids import Millis, NodeId
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import CurrentImage, ImageChange
from tidelog.node.requests.parking import PARKED, Parked, Resume

PATIENCE_MS: Millis = 500
LISTED_MS: Millis = 9_000
"""How long a fenced broker is still listed: the default of broker.session.timeout.ms."""


class RecentlyFencedBrokers:
    def __init__(self, clock: Clock, current: CurrentImage) -> None:
        self._clock = clock
        self._timers = clock.timers
        self._current = current
        self._lost: dict[NodeId, Millis] = {}
        """Leaders whose connection was lost. The value is the time until which responses wait."""
        self._fenced: dict[NodeId, Millis] = {}
        """Fenced brokers. The value is the time until which the broker is listed."""
        self._waiting: list[tuple[Collection[str] | None, Resume]] = []

    def lost(self, leader: NodeId) -> None:
        """Record that the connection to a leader that this node follows was lost."""
        until = self._clock.now + PATIENCE_MS
        self._lost[leader] = until
        self._timers.at(until, self._look)

    def found(self, leader: NodeId) -> None:
        """Record that the leader answers again."""
        if self._lost.pop(leader, None) is not None:
            self._look()

    def image_changed(self, change: ImageChange) -> None:
        old, new = change.old, change.new
        if old.brokers is not new.brokers:
            until = self._clock.now + LISTED_MS
            for broker in old.unfenced_brokers():
                now = new.brokers.get(broker.id)
                if now is not None and now.fenced:
                    self._fenced[broker.id] = until
        if self._waiting:
            self._look()

    def wait(self, topics: Collection[str] | None, resume: Resume) -> tuple[NodeId, ...] | Parked:
        """Return the recently fenced brokers.

        If the connection to a leader of these topics was just lost, the request is parked first.
        """
        if not self._names_lost(topics):
            return self._gone()
        self._waiting.append((topics, resume))
        return PARKED

    def _gone(self) -> tuple[NodeId, ...]:
        if not self._fenced:
            return ()
        now = self._clock.now
        self._fenced = {broker: until for broker, until in self._fenced.items() if now < until}
        return tuple(self._fenced)

    def _look(self) -> None:
        waiting, self._waiting = self._waiting, []
        for topics, resume in waiting:
            if self._names_lost(topics):
                self._waiting.append((topics, resume))
            else:
                resume(self._gone())

    def _names_lost(self, topics: Collection[str] | None) -> bool:
        if not self._lost:
            return False
        now = self._clock.now
        self._lost = {leader: until for leader, until in self._lost.items() if now < until}
        return any(
            partition.leader in self._lost
            for topic in self._asked(topics)
            for partition in topic.partitions.values()
        )

    def _asked(self, topics: Collection[str] | None) -> Iterable[TopicImage]:
        known = self._current.image.topics
        if topics is None:
            return known.values()
        return [known[name] for name in topics if name in known]
