"""Members of a share group that fetch and acknowledge at random, and the invariants of delivery.

A record is held by one member at a time, is delivered at most `limit` times, and is not delivered
after its acceptance was acknowledged. At the end every record is accepted, rejected or archived.
"""

from typing import Any

from tests.sim.share_member import PARTITION, ShareMember
from tests.sim.talk import Talk

from tidelog.model.errors import ErrorCode
from tidelog.sim.clients.workload import share_messages as messages
from tidelog.sim.clients.workload.share_messages import ACCEPT, REJECT, RELEASE, Delivered
from tidelog.sim.machines.cluster import SimCluster

LIMIT, LOCK_MS, PATIENCE_MS = 5, 15_000, 4_000
GOOD = "accepted", "rejected"


class DeliveryViolation(Exception):
    """An invariant of share groups does not hold."""


class Deliveries:
    """What the members of the group were told about each record."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self.settled: dict[int, str] = {}
        """The records that will not be delivered again, as the group was told."""
        self.doubtful: set[int] = set()
        """Records with an acknowledgement that was not answered, or that failed."""
        self.exhausted: set[int] = set()
        """Records whose last delivery did not end with an accepted acceptance."""
        self.delivered: dict[int, int] = {}
        self._holders: dict[int, tuple[Worker, Talk, int]] = {}

    def deliver(self, worker: "Worker", talk: Talk, offset: int, count: int) -> None:
        now = self._cluster.world.now
        self.delivered[offset] = self.delivered.get(offset, 0) + 1
        if count > LIMIT:
            raise DeliveryViolation(f"{offset} is delivered for the {count}th time")
        if offset in self.settled:
            raise DeliveryViolation(f"{offset} is delivered after it was {self.settled[offset]}")
        holder = self._holders.get(offset)
        if holder is not None:
            other, other_talk, until = holder
            if other is not worker and now < until and not other_talk.is_lost:
                raise DeliveryViolation(f"{other.name} and {worker.name} both hold {offset}")
        self._holders[offset] = worker, talk, now + LOCK_MS - PATIENCE_MS
        if count == LIMIT:
            self.exhausted.add(offset)

    def acknowledging(self, offset: int) -> None:
        self._holders.pop(offset, None)
        self.doubtful.add(offset)

    def acknowledged(self, offset: int, kind: int) -> None:
        self.doubtful.discard(offset)
        if kind != RELEASE:
            self.settled[offset] = GOOD[kind == REJECT]

    def unsettled(self, end: int) -> list[int]:
        """The records that were lost, or are not settled yet."""
        known = self.settled.keys() | self.doubtful | self.exhausted
        return [offset for offset in range(end) if offset not in known]


class Worker(ShareMember):
    """A member that works on its own, while the simulation runs."""

    def __init__(self, cluster: SimCluster, name: str, deliveries: Deliveries) -> None:
        super().__init__(cluster, name)
        self._deliveries = deliveries
        self._dice = cluster.world.dice.fork(name)
        self._turn = 0

    def begin(self) -> None:
        self.join()
        self._reconnect()

    def _reconnect(self) -> None:
        self._turn += 1
        host = next(iter(self.cluster.up), None)
        placed = None if host is None or host.node is None else host.node.image.partition(PARTITION)
        if placed is None or not placed.has_leader:
            self._later(self._reconnect)
            return
        if self._talk is not None:
            self._talk.close()
        self._session_epoch = 0
        self._talk = Talk(self.cluster, placed.leader, patience_ms=PATIENCE_MS)
        self._fetch()

    def _later(self, action: Any) -> None:
        turn = self._turn
        self.cluster.world.after(
            50 + self._dice.below(200), lambda: action() if turn == self._turn else None
        )

    def _ask(self, message: Any, then: Any) -> None:
        turn, talk = self._turn, self.talk

        def answered(answer: Any) -> None:
            if turn != self._turn:
                return
            if answer is None or answer.error_code is not ErrorCode.none:
                self._later(self._reconnect)
            else:
                then(talk, answer)

        talk.begin(message, then=answered)

    def _fetch(self) -> None:
        self._ask(self.fetching(1 + self._dice.below(4)), self._fetched)

    def _fetched(self, talk: Talk, answer: Any) -> None:
        found = messages.delivered(answer)
        for one in found:
            for offset in range(one.first, one.last + 1):
                self._deliveries.deliver(self, talk, offset, one.delivery_count)
        if set(messages.errors_of(answer).values()) - {ErrorCode.none}:
            self._later(self._reconnect)
        elif found:
            self._later(lambda: self._acknowledge(found))
        else:
            self._later(self._fetch)

    def _acknowledge(self, found: list[Delivered]) -> None:
        choice = self._dice.below(20)
        if choice == 0:
            self._reconnect()  # dies with its records
            return
        kind = REJECT if choice == 1 else RELEASE if choice < 5 else ACCEPT
        offsets = [offset for one in found for offset in range(one.first, one.last + 1)]
        for offset in offsets:
            self._deliveries.acknowledging(offset)

        def done(_: Talk, answer: Any) -> None:
            if set(messages.errors_of(answer).values()) == {ErrorCode.none}:
                for offset in offsets:
                    self._deliveries.acknowledged(offset, kind)
            self._fetch()

        self._ask(self.acknowledging(found, kind), done)
