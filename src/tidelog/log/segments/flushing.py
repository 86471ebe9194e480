"""Tracks how far a log is fsynced. While an fsync runs in a job, the log may be truncated.

Invariant: the recovery point never passes an offset whose current bytes have not been fsynced.
"""

from tidelog.log.config import UNLIMITED, LogConfig
from tidelog.model.ids import Millis, Offset


class FlushProgress:
    __slots__ = ("_asked", "_in_flight", "_last_flush", "recovery_point")

    def __init__(self, recovery_point: Offset, now: Millis) -> None:
        self.recovery_point = recovery_point
        self._asked = recovery_point
        self._last_flush = now
        self._in_flight: dict[Offset, Offset] = {}
        """The fsyncs that are running, by requested offset. The value is the offset that the fsync
        covers, which is lower if the log has been truncated in the meantime."""

    def is_due(
        self, log_end_offset: Offset, active_base: Offset, config: LogConfig, now: Millis
    ) -> bool:
        """Whether a flush is due by flush.messages, by flush.ms, or because a segment rolled."""
        unasked = log_end_offset - self._asked
        return unasked > 0 and (
            self._asked < active_base
            or unasked >= config.flush_messages
            or now - self._last_flush >= config.flush_ms
        )

    def deadline(self, log_end_offset: Offset, flush_ms: Millis) -> Millis | None:
        if flush_ms == UNLIMITED or log_end_offset == self._asked:
            return None
        return self._last_flush + flush_ms

    def begin(self, up_to: Offset, now: Millis) -> None:
        # An earlier fsync up to this offset may still be running. If the log was truncated after
        # that fsync started, the fsync covers less.
        self._in_flight[up_to] = min(up_to, self._in_flight.get(up_to, up_to))
        self._asked = up_to
        self._last_flush = now

    def ended(self, up_to: Offset) -> None:
        counts = self._in_flight.pop(up_to, None)
        if counts is not None and counts > self.recovery_point:
            self.recovery_point = counts

    def truncated(self, offset: Offset) -> None:
        """Lower the recovery point to the new end, because later appends need another fsync."""
        self.recovery_point = min(self.recovery_point, offset)
        self._asked = min(self._asked, offset)
        self._in_flight = {asked: min(n, offset) for asked, n in self._in_flight.items()}

    def restart(self, offset: Offset) -> None:
        """Start over with an empty log at this offset."""
        self.recovery_point = self._asked = offset
        self._in_flight = {}
