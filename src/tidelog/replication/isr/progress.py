"""What a leader knows of one follower, from its fetches alone.

`last_caught_up` moves by two rules. A fetch at or past the leader's end is caught up now. A fetch
at or past the end that the leader had at the *previous* fetch was caught up then: so a follower
that is never quite at the end of a busy log is still in sync (F25), and one that only fetches and
never gets there is not (F26).
"""

from tidelog.model.ids import NO_OFFSET, BrokerEpoch, Millis, Offset


class FollowerProgress:
    __slots__ = (
        "_last_fetch_leader_end",
        "broker_epoch",
        "end",
        "last_caught_up",
        "last_fetch",
    )

    def __init__(self, last_caught_up: Millis) -> None:
        self.end: Offset = NO_OFFSET
        """Where it fetched last in this epoch of the leader; -1 before its first fetch (F14)."""
        self.broker_epoch: BrokerEpoch = -1
        self.last_caught_up = last_caught_up
        self.last_fetch: Millis = -1
        """-1 before the first in this epoch of the leader."""
        self._last_fetch_leader_end: Offset = NO_OFFSET

    def fetched(
        self, offset: Offset, leader_end: Offset, broker_epoch: BrokerEpoch, now: Millis
    ) -> None:
        """Fetching from `offset` proves that the follower holds everything below it."""
        if offset >= leader_end:
            self.last_caught_up = max(self.last_caught_up, now)
        elif 0 <= self._last_fetch_leader_end <= offset:
            self.last_caught_up = max(self.last_caught_up, self.last_fetch)
        self.end = offset
        self.broker_epoch = broker_epoch
        self.last_fetch = now
        self._last_fetch_leader_end = leader_end

    def fetched_again(self, leader_end: Offset, at: Millis) -> None:
        """Its session went on to fetch until `at` without a word on this partition.

        That is a fetch from where it was. It counts only while it is at the leader's end and
        newer than what is known: it never says where the follower is.
        """
        if self.end >= leader_end and at > self.last_fetch:
            self.last_caught_up = max(self.last_caught_up, at)
            self.last_fetch = at
            self._last_fetch_leader_end = leader_end

    def is_caught_up(self, leader_end: Offset, now: Millis, max_lag: Millis) -> bool:
        """At the leader's end it is never out of sync, however long ago it fetched (F24)."""
        return self.end >= leader_end or now - self.last_caught_up <= max_lag

    def is_stuck(self, now: Millis, max_lag: Millis) -> bool:
        """Out of sync for want of any fetch, rather than for being slow."""
        return self.last_fetch < 0 or now - self.last_fetch > max_lag
