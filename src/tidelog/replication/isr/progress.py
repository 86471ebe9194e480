"""The progress of one follower, as the leader derives it from fetches alone.

Two rules advance `last_caught_up`. If a fetch reaches the leader's log end offset, `last_caught_up`
becomes the current time. If a fetch reaches the log end offset that the leader had at the
*previous* fetch, `last_caught_up` becomes the time of that previous fetch. A follower that is never
quite at the end of a busy log therefore stays in sync (F25). A follower that fetches but falls
further behind does not stay in sync (F26).
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
        """The follower's last fetch offset in this leader epoch; -1 before its first fetch (F14).
        """
        self.broker_epoch: BrokerEpoch = -1
        self.last_caught_up = last_caught_up
        self.last_fetch: Millis = -1
        """The time of the follower's last fetch; -1 before its first fetch in this leader epoch."""
        self._last_fetch_leader_end: Offset = NO_OFFSET

    def fetched(
        self, offset: Offset, leader_end: Offset, broker_epoch: BrokerEpoch, now: Millis
    ) -> None:
        """Record a fetch, which proves that the follower holds every record below `offset`."""
        if offset >= leader_end:
            self.last_caught_up = max(self.last_caught_up, now)
        elif 0 <= self._last_fetch_leader_end <= offset:
            self.last_caught_up = max(self.last_caught_up, self.last_fetch)
        self.end = offset
        self.broker_epoch = broker_epoch
        self.last_fetch = now
        self._last_fetch_leader_end = leader_end

    def fetched_again(self, leader_end: Offset, at: Millis) -> None:
        """Record that the follower's session fetched until `at` without listing this partition.

        This counts as a fetch at the same offset, if the follower's offset is at the leader's log
        end and `at` is later than the last fetch. The follower's offset never changes here.
        """
        if self.end >= leader_end and at > self.last_fetch:
            self.last_caught_up = max(self.last_caught_up, at)
            self.last_fetch = at
            self._last_fetch_leader_end = leader_end

    def is_caught_up(self, leader_end: Offset, now: Millis, max_lag: Millis) -> bool:
        """Whether the follower is in sync. A follower at the log end is always in sync (F24)."""
        return self.end >= leader_end or now - self.last_caught_up <= max_lag

    def is_stuck(self, now: Millis, max_lag: Millis) -> bool:
        """Whether the follower has not fetched for `max_lag`.

        A follower that fetches may be slow, but it is not stuck.
        """
        return self.last_fetch < 0 or now - self.last_fetch > max_lag
