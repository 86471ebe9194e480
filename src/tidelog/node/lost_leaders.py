"""Leaders that this node has just lost: who asks where partitions are is told after the election.

A client that loses a broker looks for other leaders at once, which is before there can be any, and
librdkafka does not look again for about a second. So an answer that would name a leader whose
connection was lost a moment ago waits for the election, which takes some 20 ms.

Invariant: nobody waits longer than PATIENCE_MS from the loss, whatever becomes of the leader.
"""

from collections.abc import Callable, Collection, Iterable

from tidelog.controller.image import ClusterImage, TopicImage
from tidelog.model.ids import Millis, NodeId
from tidelog.node.clock import Clock
from tidelog.node.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timers

PATIENCE_MS: Millis = 500


class LostLeaders:
    def __init__(self, clock: Clock, timers: Timers, image: Callable[[], ClusterImage]) -> None:
        self._clock = clock
        self._timers = timers
        self._image = image
        self._lost: dict[NodeId, Millis] = {}
        """Each with the time until which its successor is waited for."""
        self._waiting: list[tuple[Collection[str] | None, Resume]] = []

    def lost(self, leader: NodeId) -> None:
        """The connection by which this node follows a leader was lost."""
        until = self._clock.now + PATIENCE_MS
        self._lost[leader] = until
        self._timers.at(until, self._look)

    def found(self, leader: NodeId) -> None:
        """It answers after all."""
        if self._lost.pop(leader, None) is not None:
            self._look()

    def image_changed(self) -> None:
        if self._waiting:
            self._look()

    def wait(self, topics: Collection[str] | None, resume: Resume) -> Parked | None:
        """Go on at once unless one of these topics (None: of all) has a leader just lost."""
        if not self._names_lost(topics):
            return None
        self._waiting.append((topics, resume))
        return PARKED

    def _look(self) -> None:
        waiting, self._waiting = self._waiting, []
        for topics, resume in waiting:
            if self._names_lost(topics):
                self._waiting.append((topics, resume))
            else:
                resume(None)

    def _names_lost(self, topics: Collection[str] | None) -> bool:
        now = self._clock.now
        self._lost = {leader: until for leader, until in self._lost.items() if now < until}
        if not self._lost:
            return False
        return any(
            partition.leader in self._lost
            for topic in self._asked(topics)
            for partition in topic.partitions.values()
        )

    def _asked(self, topics: Collection[str] | None) -> Iterable[TopicImage]:
        known = self._image().topics
        if topics is None:
            return known.values()
        return [known[name] for name in topics if name in known]
