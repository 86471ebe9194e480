"""The leader of one partition: follower progress, the in-sync set and the high watermark.

Invariants: the high watermark never moves back. It never passes the offset that the partition's
commit rule allows. The ISR rule looks at the maximal in-sync set, which is the agreed set plus the
replicas that this leader has asked to add. The quorum rule looks at all replicas. At most one
change of the in-sync set is in flight. The change is valid only for the partition epoch of its
request. The replicas that the change adds stay in the maximal set until the controller has
certainly refused the change, or a later partition epoch is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from tidelog.model.ids import NO_OFFSET, BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset
from tidelog.model.replication_events import FollowerState, LeaveReason, Left
from tidelog.replication.commit import InSync
from tidelog.replication.isr.progress import FollowerProgress
from tidelog.replication.rules import ISR, CommitRule


@dataclass(slots=True)
class Produced:
    """The leader's log holds everything below `end`, as durably as its flush policy requires."""

    end: Offset


@dataclass(slots=True)
class FollowerFetched:
    """A follower in the leader's epoch fetches from `offset`. Its log matches up to that offset."""

    replica: NodeId
    offset: Offset
    broker_epoch: BrokerEpoch
    is_eligible: bool
    """Whether the follower is unfenced, is not shutting down and fetches with its registered broker
    epoch (F15, F16).
    """


@dataclass(slots=True)
class FollowerFetchedAgain:
    """A fetch in a follower's session did not list this partition, so its offset is unchanged."""

    replica: NodeId
    at: Millis


@dataclass(slots=True)
class IsrAgreed:
    """The controller has committed this state of the partition."""

    isr: frozenset[NodeId]
    replicas: frozenset[NodeId]
    partition_epoch: int
    minimum: int


@dataclass(slots=True)
class IsrRefused:
    """The controller has refused the change requested at this partition epoch."""

    partition_epoch: int


@dataclass(slots=True)
class IsrUnanswered:
    """The outcome of the change requested at this partition epoch is unknown (F12, F28)."""

    partition_epoch: int


@dataclass(slots=True)
class LagChecked:
    """The isr-expiration timer has fired, so the leader removes lagging replicas from the ISR."""

    max_lag: Millis


LeaderEvent: TypeAlias = (
    Produced
    | FollowerFetched
    | FollowerFetchedAgain
    | IsrAgreed
    | IsrRefused
    | IsrUnanswered
    | LagChecked
)


@dataclass(slots=True)
class AdvanceHighWatermark:
    to: Offset


class IsrMember(NamedTuple):
    replica: NodeId
    broker_epoch: BrokerEpoch


@dataclass(slots=True)
class ProposeIsr:
    """Ask the controller for this in-sync set. It refuses if the partition epoch does not match."""

    isr: tuple[IsrMember, ...]
    partition_epoch: int
    left: tuple[Left, ...] = ()
    """The replicas that leave the in-sync set, with the reasons."""


LeaderEffect: TypeAlias = AdvanceHighWatermark | ProposeIsr


ASK_AGAIN_MS: Millis = 200
"""How long to wait after a refusal or a missing answer before asking the controller again."""


class PartitionLeader:
    """The leadership of one partition during one leader epoch."""

    __slots__ = (
        "_agreed",
        "_ends",
        "_in_sync",
        "_is_asked",
        "_may_ask_at",
        "_me",
        "_minimum",
        "_partition_epoch",
        "_progress",
        "_proposal",
        "_proposed",
        "_rule",
        "epoch",
        "epoch_start",
        "high_watermark",
    )

    def __init__(
        self,
        me: NodeId,
        epoch: LeaderEpoch,
        epoch_start: Offset,
        end: Offset,
        high_watermark: Offset,
        agreed: IsrAgreed,
        now: Millis,
        rule: CommitRule = ISR,
    ) -> None:
        assert high_watermark <= end
        self._rule = rule
        self._me = me
        self._agreed = agreed.isr
        self._minimum = agreed.minimum
        self._partition_epoch = agreed.partition_epoch
        self._proposed: frozenset[NodeId] | None = None
        self._proposal: ProposeIsr | None = None
        self._is_asked = False
        self._may_ask_at: Millis = 0
        # Members of the in-sync set get a full lag time to send their first fetch (F23).
        self._progress = {
            replica: FollowerProgress(now if replica in agreed.isr else 0)
            for replica in sorted(agreed.replicas)
            if replica != me
        }
        self._ends: dict[NodeId, Offset] = {me: end, **dict.fromkeys(self._progress, NO_OFFSET)}
        self._in_sync = InSync(self._agreed, self._agreed, self._minimum, epoch_start)
        self.epoch = epoch
        self.epoch_start = epoch_start
        self.high_watermark = high_watermark

    def step(self, event: LeaderEvent, now: Millis) -> list[LeaderEffect]:
        """Apply one event and return its effects; nothing else changes the state."""
        effects: list[LeaderEffect] = []
        match event:
            case Produced():
                assert event.end >= self._ends[self._me]
                self._ends[self._me] = event.end
            case FollowerFetched():
                progress = self._progress.get(event.replica)
                if progress is None:
                    return effects  # no longer a replica
                progress.fetched(event.offset, self._ends[self._me], event.broker_epoch, now)
                self._ends[event.replica] = event.offset
                if self._proposed is not None:
                    self._maybe_ask_again(now, effects)
                elif event.replica not in self._agreed:
                    self._maybe_expand(event, progress, now, effects)
            case FollowerFetchedAgain():
                progress = self._progress.get(event.replica)
                if progress is not None:
                    progress.fetched_again(self._ends[self._me], event.at)
                return effects  # no log end offset has changed
            case LagChecked():
                self._maybe_ask_again(now, effects)
                self._maybe_shrink(now, event.max_lag, effects)
            case IsrAgreed():
                self._agree(event)
            case IsrRefused() | IsrUnanswered():
                self._not_agreed(event, now)
            case _:
                assert_never(event)
        self._advance(effects)
        return effects

    # -- queries, which change nothing -------------------------------------------------------------

    @property
    def me(self) -> NodeId:
        return self._me

    @property
    def isr(self) -> frozenset[NodeId]:
        return self._agreed

    @property
    def replicas(self) -> frozenset[NodeId]:
        return frozenset(self._ends)

    def has_replica(self, id: NodeId) -> bool:
        return id in self._ends

    def holders(self, offset: Offset) -> Iterable[tuple[NodeId, Offset, Millis]]:
        """Yield id, end offset and last caught-up time of in-sync followers that reach `offset`."""
        for replica, progress in self._progress.items():
            if replica in self._agreed and progress.end >= offset:
                yield replica, progress.end, progress.last_caught_up

    @property
    def replica_count(self) -> int:
        return len(self._ends)

    @property
    def minimum(self) -> int:
        return self._minimum

    @property
    def is_below_min_isr(self) -> bool:
        """Whether too few replicas are in sync, so that writes with acks=all are refused."""
        return len(self._agreed) < self._minimum

    def has_stuck_follower(self, now: Millis, patience: Millis) -> bool:
        """Whether an in-sync follower has not fetched for `patience`, so nothing is committed."""
        return any(
            replica != self._me and self._progress[replica].is_stuck(now, patience)
            for replica in self._agreed
        )

    def is_at_rest_with(self, follower: NodeId) -> bool:
        """Whether a fetch by this follower at the log end would leave the in-sync set unchanged."""
        return self._proposed is None and follower in self._agreed

    @property
    def is_settled(self) -> bool:
        """Whether the high watermark covers everything that earlier leaders committed (F50)."""
        return self.high_watermark >= self.epoch_start

    @property
    def end(self) -> Offset:
        """The log end offset of the leader itself.

        All records below it are as durable as the flush policy requires.
        """
        return self._ends[self._me]

    def followers(self, now: Millis) -> tuple[FollowerState, ...]:
        """The progress of each follower, as shown by its fetches."""
        end = self._ends[self._me]
        return tuple(self._state(replica, end, now) for replica in self._progress)

    def _state(self, replica: NodeId, end: Offset, now: Millis) -> FollowerState:
        progress, in_sync = self._progress[replica], replica in self._agreed
        since = now - progress.last_caught_up if progress.last_caught_up else None
        if progress.last_fetch < 0:
            return FollowerState(replica, None, None, since, in_sync, None)
        lag = max(0, end - progress.end)
        return FollowerState(
            replica,
            progress.end,
            lag,
            since if lag else 0,
            in_sync,
            now - progress.last_fetch,
        )

    # -- the in-sync set ---------------------------------------------------------------------------

    def _settle_in_sync(self) -> None:
        """Recompute the agreed set, and the maximal set of replicas that may be in sync (F12)."""
        maximal = self._agreed if self._proposed is None else self._agreed | self._proposed
        self._in_sync = InSync(self._agreed, maximal, self._minimum, self.epoch_start)

    def _maybe_expand(
        self,
        event: FollowerFetched,
        progress: FollowerProgress,
        now: Millis,
        effects: list[LeaderEffect],
    ) -> None:
        if not event.is_eligible or now < self._may_ask_at:
            return
        if progress.end >= self._join_offset:
            self._propose(self._agreed | {event.replica}, effects)

    @property
    def _join_offset(self) -> Offset:
        """The offset that a follower must reach to hold every committed record.

        It is at least the start of this epoch, because the high watermark may be too low after an
        election. A follower that reaches only the high watermark may lack committed records (F13).
        """
        return max(self.high_watermark, self.epoch_start)

    def _maybe_shrink(self, now: Millis, max_lag: Millis, effects: list[LeaderEffect]) -> None:
        if self._proposed is not None:
            return
        lagging = tuple(
            self._left(replica, now, max_lag)
            for replica in sorted(self._agreed)
            if replica != self._me
            and not self._progress[replica].is_caught_up(self._ends[self._me], now, max_lag)
        )
        if lagging:
            self._propose(self._agreed - {one.broker for one in lagging}, effects, lagging)

    def _left(self, replica: NodeId, now: Millis, max_lag: Millis) -> Left:
        progress = self._progress[replica]
        is_stuck = progress.is_stuck(now, max_lag)
        end = None if progress.end == NO_OFFSET else progress.end
        reason = LeaveReason.STUCK if is_stuck else LeaveReason.SLOW
        return Left(replica, reason, end, now - progress.last_caught_up)

    def _propose(
        self, isr: frozenset[NodeId], effects: list[LeaderEffect], left: tuple[Left, ...] = ()
    ) -> None:
        assert self._me in isr
        self._proposed = isr
        self._settle_in_sync()
        self._proposal = ProposeIsr(tuple(self._members(isr)), self._partition_epoch, left)
        self._is_asked = True
        effects.append(self._proposal)

    def _maybe_ask_again(self, now: Millis, effects: list[LeaderEffect]) -> None:
        """Repeat a request whose outcome is unknown. No other change is requested in between.

        The request keeps its original broker epochs. It therefore cannot add a replica that has
        lost its log after the first request (F15).
        """
        if self._proposed is not None and not self._is_asked and now >= self._may_ask_at:
            assert self._proposal is not None
            self._is_asked = True
            effects.append(self._proposal)

    def _not_agreed(self, event: IsrRefused | IsrUnanswered, now: Millis) -> None:
        if event.partition_epoch != self._partition_epoch:
            return
        self._is_asked = False
        self._may_ask_at = now + ASK_AGAIN_MS
        if isinstance(event, IsrRefused):
            self._proposed = None
            self._settle_in_sync()

    def _members(self, isr: frozenset[NodeId]) -> Iterable[IsrMember]:
        for replica in sorted(isr):
            progress = self._progress.get(replica)
            yield IsrMember(replica, progress.broker_epoch if progress is not None else -1)

    def _agree(self, event: IsrAgreed) -> None:
        if event.partition_epoch < self._partition_epoch:
            return
        expected = self._agreed if self._proposed is None else self._agreed & self._proposed
        for replica in sorted(expected - event.isr - {self._me}):
            # The controller removed the replica because its process ended or its log is damaged.
            # Its earlier offset therefore proves nothing, and the replica must fetch again. Its
            # caught-up time stays valid, so that a replica that joins again at the high watermark
            # does not count as lagging before its next fetch (F23).
            self._progress[replica] = FollowerProgress(self._progress[replica].last_caught_up)
            self._ends[replica] = NO_OFFSET
        if event.partition_epoch > self._partition_epoch:
            self._proposed = None
            self._is_asked = False
        self._partition_epoch = event.partition_epoch
        self._agreed, self._minimum = event.isr, event.minimum
        for replica in sorted(event.replicas):
            if replica != self._me and replica not in self._progress:
                self._progress[replica] = FollowerProgress(0)
                self._ends[replica] = NO_OFFSET
        for replica in list(self._progress):
            if replica not in event.replicas:
                # If a removed replica is added again, its progress starts from nothing (F14).
                del self._progress[replica], self._ends[replica]
        self._settle_in_sync()

    def _advance(self, effects: list[LeaderEffect]) -> None:
        committed = self._rule.committed(self._ends, self._in_sync, self.high_watermark)
        if committed > self.high_watermark:
            self.high_watermark = committed
            effects.append(AdvanceHighWatermark(committed))
