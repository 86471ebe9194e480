"""Answers fetches. A fetch without enough data waits for a change, a cold read or its timeout."""

from itertools import count

from tidelog.model.disk import FileSlice, NotCached
from tidelog.model.effects import FetchBatches, FetchResult
from tidelog.model.ids import ConnId, Millis
from tidelog.node.clock import Clock
from tidelog.node.events.counters import Counters
from tidelog.node.partitions.cold_reads import ColdReads, Waiter
from tidelog.node.partitions.fetch_attempt import FetchAttempt
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.rereads import SHORT_READS_PER_TURN, Rereads
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer

COLD_WAIT_MS: Millis = 500
"""The minimum time that a fetch waits for bytes that are not cached, even if its max_wait is
shorter.
"""
MANY_PARTITIONS = 20
"""Woken fetches of more partitions than this do not delay woken fetches of fewer partitions."""
ROUNDS = 32
"""The maximum number of cold reads of a fetch. After that, the fetch waits for the disk."""


class Fetches:
    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        counters: Counters,
        cold_reads: ColdReads,
    ) -> None:
        self.partitions = partitions
        self._clock = clock
        self._timers = clock.timers
        self._counters = counters
        self._cold_reads = cold_reads
        self._waiting: dict[ConnId, dict[PendingFetch, None]] = {}
        """The parked fetches of each connection."""
        self._turns = count()
        self._rereads = Rereads(clock, SHORT_READS_PER_TURN)
        self._long_rereads = Rereads(clock)

    def fetch(
        self, effect: FetchBatches, resume: Resume, conn: ConnId
    ) -> list[FetchResult] | Parked:
        if effect.replica >= 0:
            try:
                may_wait = self.partitions.prove(effect)
            except NotCached as cold:
                if not self._cold_reads.was_just_read(cold.part):
                    self._fetch_later(cold.part, effect, resume, conn)
                    return PARKED
                may_wait = self.partitions.prove(effect, waits=True)
            if may_wait and effect.max_wait_ms > 0 and effect.min_bytes > 0:
                self._park(effect, resume, conn, effect.max_wait_ms)
                return PARKED
        attempt = self.partitions.attempt(effect)
        if attempt.cold:
            attempt = self.waiting_if_evicted(attempt, effect, 0)
        if attempt.is_enough or (effect.max_wait_ms <= 0 and not attempt.cold):
            self.answering(effect, attempt)
            if attempt.cold:
                # The other partitions are answered now. The next fetch will find the cold bytes
                # cached.
                self.read_cold(attempt, conn, lambda: None)
            return attempt.results
        wait_ms = effect.max_wait_ms
        if attempt.cold:
            wait_ms = max(wait_ms, COLD_WAIT_MS)
        pending = self._park(effect, resume, conn, wait_ms)
        if attempt.cold:
            self.read_cold(attempt, conn, pending.cached)
        return PARKED

    def _park(
        self, effect: FetchBatches, resume: Resume, conn: ConnId, wait_ms: Millis
    ) -> "PendingFetch":
        here: list[Replica] = []
        if effect.session is None:
            partitions = self.partitions
            here += [r for read in effect.reads if (r := partitions.get(read.partition))]
        waiting = self._waiting.setdefault(conn, {})
        turn = next(self._turns)
        rereads = self._long_rereads if len(here) > MANY_PARTITIONS else self._rereads
        pending = PendingFetch(self, effect, resume, conn, here, waiting, turn, rereads)
        pending.timer = self._timers.at(self._clock.now + wait_ms, pending.time_out)
        return pending

    def _fetch_later(
        self, cold: FileSlice, effect: FetchBatches, resume: Resume, conn: ConnId
    ) -> None:
        """Begin the fetch again once the bytes that its first step needs are cached."""

        def again() -> None:
            results = self.fetch(effect, resume, conn)
            if results is not PARKED:
                resume(results)

        self._cold_reads.begin(cold, conn, again)

    def waiting_if_evicted(
        self, attempt: FetchAttempt, effect: FetchBatches, rounds: int
    ) -> FetchAttempt:
        """If cold reads did not help, wait for the disk, so that every fetch makes progress."""
        has_failed = any(map(self._cold_reads.was_just_read, attempt.cold))
        if not attempt.is_enough and (has_failed or rounds > ROUNDS):
            return self.partitions.attempt(effect, waits=True)
        return attempt

    def read_cold(self, attempt: FetchAttempt, conn: ConnId, waiter: Waiter) -> None:
        for part in attempt.cold:
            self._cold_reads.begin(part, conn, waiter)

    def answering(self, effect: FetchBatches, attempt: FetchAttempt) -> None:
        """Count the bytes, and note the partitions of the session that have nothing more to return.

        The handler continues later, from the ready queue. A partition that moves until then is
        marked again, and the session's next fetch reads it (F99).
        """
        if effect.session is not None:
            for read, result in zip(effect.reads, attempt.results, strict=True):
                if result.is_at_rest and read.watch is not None:
                    read.watch.rest()
        if effect.replica >= 0:
            self._counters.replication_bytes_out += attempt.size
        else:
            self._counters.bytes_out += attempt.size

    def sent_to_client(self, size: int) -> None:
        """Count bytes of records that leave in an answer of another kind."""
        self._counters.bytes_out += size

    def answer_follower_fetches(self, conn: ConnId) -> None:
        """Answer the parked fetches of a follower that has new partitions to fetch."""
        for fetch in list(self._waiting.get(conn, ())):
            if fetch.is_followers:
                fetch.time_out()

    def connection_lost(self, conn: ConnId) -> None:
        """Drop the parked fetches and the cold reads of a lost connection."""
        for fetch in list(self._waiting.pop(conn, ())):
            fetch.drop()
        self._cold_reads.connection_lost(conn)


class PendingFetch:
    """A parked fetch. A follower's fetch is read at once when it is woken, a client's in turns."""

    __slots__ = (
        "_conn",
        "_effect",
        "_has_timed_out",
        "_owner",
        "_parked_at",
        "_rereads",
        "_resume",
        "_rounds",
        "_waiting",
        "is_followers",
        "order",
        "timer",
    )

    def __init__(
        self,
        owner: Fetches,
        effect: FetchBatches,
        resume: Resume,
        conn: ConnId,
        parked_at: list[Replica],
        waiting: dict["PendingFetch", None],
        order: int,
        rereads: Rereads,
    ) -> None:
        self.order = order
        self.timer: Timer | None = None
        self.is_followers = effect.replica >= 0
        self._owner = owner
        self._effect = effect
        self._resume = resume
        self._conn = conn
        self._parked_at = parked_at
        self._waiting = waiting
        self._rereads = rereads
        self._rounds = 0
        self._has_timed_out = False
        waiting[self] = None
        if effect.session is not None:
            effect.session.park(self)
        for replica in parked_at:
            replica.listen(self, is_follower=self.is_followers)

    @property
    def partitions(self) -> int:
        session = self._effect.session
        return len(self._parked_at) if session is None else len(session.moved)

    def mark(self) -> None:
        """Do nothing, because a woken fetch without a session reads every partition anyway."""

    @property
    def waiting(self) -> tuple["PendingFetch"]:
        return (self,)

    def wake(self) -> None:
        """Read again, now or in turn, because a partition has changed."""
        if self.is_followers or self._rereads.admits(self):
            self.read_again()

    def cached(self) -> None:
        """Read again, because bytes that were missing are now in the page cache."""
        if self in self._waiting:
            self._rounds += 1
            self.wake()

    def time_out(self) -> None:
        """Read again, now or in turn, and answer with whatever is found."""
        self._has_timed_out = True
        self.wake()

    def drop(self) -> None:
        """Stop waiting, because the fetch is answered or its connection is lost."""
        self._waiting.pop(self, None)
        if not self.is_followers:
            self._rereads.drop(self)
        if self.timer is not None:
            self.timer.cancel()
        if self._effect.session is not None:
            self._effect.session.unpark(self)
        for replica in self._parked_at:
            replica.unlisten(self)

    def read_again(self) -> None:
        """Read the session's partitions that have moved; without a session, read all of them.

        Answer if this finds enough, or if the time is over.
        """
        effect, owner = self._effect, self._owner
        if effect.session is not None:
            effect.reads = effect.session.due()
        attempt = owner.partitions.attempt(effect)
        if attempt.cold:
            attempt = owner.waiting_if_evicted(attempt, effect, self._rounds)
            owner.read_cold(attempt, self._conn, self.cached)
        if attempt.is_enough or self._has_timed_out:
            self.drop()
            owner.answering(effect, attempt)
            self._resume(attempt.results)
