"""This node's part in the metadata quorum: carries out what its machine asks, and builds the image.

Invariant: the image holds exactly what is committed, in the order of the log; what a leader has
appended and not committed lives in the pending image alone, and is dropped with the leadership.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tidelog.controller.apply import apply_all
from tidelog.controller.image import ClusterImage
from tidelog.model.disk import Disk
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset
from tidelog.node import quorum_state
from tidelog.node.clock import Clock
from tidelog.node.metadata_log import MetadataLog
from tidelog.node.timers import Timer, Timers
from tidelog.protocol.metadata_records import MetadataRecord
from tidelog.replication.quorum.events import (
    Commit,
    LogGrew,
    LoseLeadership,
    QuorumEffect,
    QuorumEvent,
    SaveQuorumState,
    TakeLeadership,
    TimePassed,
)
from tidelog.replication.quorum.machine import QuorumMachine


class QuorumListener(Protocol):
    """Who is told of what the quorum decides."""

    def image_changed(self, old: ClusterImage, new: ClusterImage) -> None: ...

    def leadership_taken(self, epoch: LeaderEpoch) -> None:
        """This node leads, and everything before its epoch is committed and applied."""

    def leadership_lost(self) -> None: ...


class Quorum:
    def __init__(
        self,
        machine: QuorumMachine,
        log: MetadataLog,
        disk: Disk,
        clock: Clock,
        timers: Timers,
        listener: QuorumListener,
        cluster_id: str,
    ) -> None:
        self.machine = machine
        self.image = ClusterImage(cluster_id=cluster_id)
        self._log = log
        self._disk = disk
        self._clock = clock
        self._timers = timers
        self._listener = listener
        self._leading: LeaderEpoch = NO_EPOCH
        self._is_active = False
        self._pending: deque[tuple[Offset, ClusterImage]] = deque()
        self._waiting: deque[tuple[Offset, Callable[[], None]]] = deque()
        self._alarm: Timer | None = None

    @property
    def is_active(self) -> bool:
        """Whether this node's controller may decide."""
        return self._is_active

    @property
    def pending_image(self) -> ClusterImage:
        """The image as it will be once everything appended is committed."""
        return self._pending[-1][1] if self._pending else self.image

    @property
    def next_offset(self) -> Offset:
        """Where the next record will stand."""
        return self._log.log.log_end_offset

    def start(self) -> None:
        self._carry_out(self.machine.start(self._clock.now))

    def step(self, event: QuorumEvent) -> None:
        self._carry_out(self.machine.step(event, self._clock.now))

    # -- the controller's way in -------------------------------------------------------------------

    def propose(self, records: Sequence[MetadataRecord], committed: Callable[[], None]) -> None:
        """Append as one batch; `committed` is called when the image holds it."""
        assert self._is_active
        end = self._log.append(records, self._leading, self._clock.now)
        image = apply_all(self.pending_image, records, end - 1, self._leading)
        self._pending.append((end, image))
        self._waiting.append((end, committed))

    def when_committed(self, committed: Callable[[], None]) -> None:
        """Call back once everything that is pending now is committed; at once if nothing is."""
        if self._pending:
            self._waiting.append((self._pending[-1][0], committed))
        else:
            committed()

    def flushed(self, up_to: Offset) -> None:
        """The metadata log is synced this far."""
        self._log.flushed(up_to)
        self.step(LogGrew(self._log.synced_end))

    # -- effects of the machine --------------------------------------------------------------------

    def _carry_out(self, effects: list[QuorumEffect]) -> None:
        for effect in effects:
            match effect:
                case SaveQuorumState():
                    quorum_state.save(self._disk, effect.state)
                case TakeLeadership():
                    self._take_leadership(effect)
                case LoseLeadership():
                    self._lose_leadership()
                case Commit():
                    self._commit(effect.to)
                case _:
                    raise AssertionError(f"a quorum of one sends nothing: {effect}")
        self._set_alarm()

    def _take_leadership(self, effect: TakeLeadership) -> None:
        self._leading = effect.epoch
        self._log.append_leader_change(
            self.machine.me.id, effect.epoch, effect.voters, effect.granted_by, self._clock.now
        )

    def _lose_leadership(self) -> None:
        self._leading = NO_EPOCH
        self._is_active = False
        self._pending.clear()
        self._waiting.clear()
        self._listener.leadership_lost()

    def _commit(self, to: Offset) -> None:
        old = self.image
        self._advance(to)
        if self.image is not old:
            self._listener.image_changed(old, self.image)
        if self._leading != NO_EPOCH and not self._is_active:
            self._is_active = True
            self._listener.leadership_taken(self._leading)
        while self._waiting and self._waiting[0][0] <= to:
            self._waiting.popleft()[1]()

    def _advance(self, to: Offset) -> None:
        """Bring the image up to `to`: from what was pending here, else from the log."""
        while self._pending and self._pending[0][0] <= to:
            self.image = self._pending.popleft()[1]
        for last, epoch, records in self._log.read(self.image.offset + 1, to):
            self.image = apply_all(self.image, records, last, epoch)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = self.machine.next_deadline()
        if deadline is not None:
            self._alarm = self._timers.at(deadline, lambda: self.step(TimePassed()))
