"""The freeze meter: counts passes of the loop that take too long and reports the longest step.

One thread serves all clients, so a long step delays all other clients and the heartbeats. The loop
reads the clock after each step anyway. It calls the meter only for a step of `STEP_MS` or more, and
for a pass of `SLOW_MS` or more.

Time is reported twice, as elapsed time and as CPU time of this thread. If the two times differ, the
thread was waiting for a processor or a disk, so computing was not the only cause of the delay.
"""

import logging
from collections.abc import Callable
from time import thread_time_ns

from tidelog.model.ids import Millis
from tidelog.model.metrics import Counter, Gauge, Metric
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import decode_request_header
from tidelog.protocol.messages.schema import API_NAMES
from tidelog.runtime.logs import LineLimit
from tidelog.runtime.transport.connection import Connection

SLOW_MS: Millis = 50
STEP_MS: Millis = 10
"""A step that is shorter than this is not reported, even if the pass is slow."""

CLIENT_ID_LENGTH = 60

log = logging.getLogger(__name__)


class FreezeMeter:
    """Measures each pass of the loop."""

    __slots__ = (
        "_computing",
        "_computing_lines",
        "_cpu_clock",
        "_cpu_ns",
        "_longest_pass_ms",
        "_step",
        "_waiting",
        "_waiting_lines",
        "began",
        "report_from_ms",
    )

    def __init__(self, cpu_clock: Callable[[], int] = thread_time_ns) -> None:
        self._cpu_clock = cpu_clock
        self._cpu_ns = 0
        self._computing_lines = LineLimit(burst=10, every_ms=10_000)
        self._waiting_lines = LineLimit(burst=3, every_ms=30_000)
        self._longest_pass_ms: Millis = 0
        self._step = ""
        self._computing = self._waiting = 0
        self.began: Millis = -1
        """The start of this pass. Passes that start in the same millisecond count as one pass."""
        self.report_from_ms: Millis = STEP_MS
        """The loop calls `blame` for a step that takes at least this long. This is STEP_MS at
        first, and later 1 ms more than the longest reported step of this pass.
        """

    def begin(self, now: Millis) -> None:
        self.began = now
        self._cpu_ns = self._cpu_clock()

    def has_computed(self, ms: Millis) -> bool:
        """Whether this pass has used at least this much CPU time."""
        return self._cpu_clock() - self._cpu_ns >= ms * 1_000_000

    def blame(self, took_ms: Millis, step: str, conn: Connection | None = None) -> None:
        """Record a step that is the longest of the pass so far."""
        self._note(took_ms, step if conn is None else f"{step} {conn.peer}")

    def blame_frame(self, took_ms: Millis, conn: Connection, frame: memoryview) -> None:
        """Like `blame`, for the handling of a frame: a client's request or a peer's response."""
        if conn.id < 0:
            self._note(took_ms, f"an answer of {len(frame)} bytes from {conn.peer}")
        else:
            self._note(took_ms, f"{_described(frame)} from {conn.peer}")

    def end(self, now: Millis, events: int) -> None:
        """End a pass that took `SLOW_MS` or more, or that contains a recorded step."""
        took_ms, step, step_ms = now - self.began, self._step, self.report_from_ms
        self._step, self.report_from_ms = "", STEP_MS
        if took_ms < SLOW_MS:
            return
        cpu_ms = (self._cpu_clock() - self._cpu_ns) // 1_000_000
        if cpu_ms >= SLOW_MS:
            self._computing += 1
            lines = self._computing_lines
        else:
            self._waiting += 1
            lines = self._waiting_lines
        self._longest_pass_ms = max(self._longest_pass_ms, took_ms)
        if not lines.allow(now):
            return
        log.warning(
            "a pass of the loop took %d ms (%d ms of CPU) for %d events; longest step: %s%s",
            took_ms,
            cpu_ms,
            events,
            f"{step_ms - 1} ms for {step}" if step else f"less than {STEP_MS} ms",
            lines.omitted(),
        )

    def metrics(self) -> list[Metric]:
        return [
            Counter(
                "tidelog_loop_slow_passes",
                f"Passes of the loop that took {SLOW_MS} ms or more, computing or waiting.",
                (
                    ((("spent", "computing"),), self._computing),
                    ((("spent", "waiting"),), self._waiting),
                ),
            ),
            Gauge(
                "tidelog_loop_longest_pass_ms",
                "The longest pass of the loop since the start.",
                (((), self._longest_pass_ms),),
            ),
        ]

    def _note(self, took_ms: Millis, step: str) -> None:
        self._step = step
        self.report_from_ms = took_ms + 1


def _described(frame: memoryview) -> str:
    try:
        header = decode_request_header(frame)
    except MalformedMessage:
        return f"a malformed request of {len(frame)} bytes"
    name = API_NAMES.get(header.api_key, "").title().replace("_", "") or f"API {header.api_key}"
    client = (header.client_id or "")[:CLIENT_ID_LENGTH]
    return f"{name} v{header.api_version} of {len(frame)} bytes, client id {client!r},"
