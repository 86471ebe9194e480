"""A cluster in memory with transactions, and writers that are stopped and killed at any step."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from tidelog_pipelines.sinks.transactional.markers import Marker
from tidelog_pipelines.sinks.transactional.writer import Outcome, Record, Transactions

Write = Callable[[Transactions, Marker, Iterable[Record]], Outcome]


class Fenced(Exception):
    pass


class Killed(BaseException):
    pass


class Unanswered(Exception):
    """The cluster has done its work, and the answer is lost."""


class MemoryCluster:
    """The state of one transactional id, and what readers of committed records see."""

    def __init__(self) -> None:
        self.visible: list[bytes] = []
        self.marker: Marker | None = None
        self.producer_epoch = -1

    def bump(self) -> int:
        """Fence all earlier producers. Their open transaction is aborted."""
        self.producer_epoch += 1
        return self.producer_epoch

    def check(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            raise Fenced


class Attempt:
    """One try of a micro-batch, in a thread that stops before each step."""

    def __init__(
        self, cluster: MemoryCluster, marker: Marker, values: list[bytes], write: Write
    ) -> None:
        self._cluster = cluster
        self._marker, self._values, self._write = marker, values, write
        self._may_go, self._has_stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._is_killed = self._loses_answer = False
        self._producer_epoch = -1
        self._open: list[bytes] = []
        self.outcome: Outcome | None = None
        self.is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._has_stopped.acquire()

    def step(self, *, kill: bool = False, lose_answer: bool = False) -> None:
        """Let the attempt do its next step, or kill it."""
        if self.is_over:
            return
        self._is_killed, self._loses_answer = kill, lose_answer
        self._may_go.release()
        self._has_stopped.acquire()

    def finish(self) -> None:
        while not self.is_over:
            self.step()

    def _run(self) -> None:
        try:
            records = (Record(None, value) for value in self._values)
            self.outcome = self._write(self, self._marker, records)
        except (Fenced, Unanswered, Killed):
            pass
        finally:
            self.is_over = True
            self._has_stopped.release()

    def _do(self, work: Callable[[], Any]) -> Any:
        if self._is_killed:
            raise Killed
        self._has_stopped.release()
        self._may_go.acquire()
        if self._is_killed:
            raise Killed
        result = work()
        if self._loses_answer:
            raise Unanswered
        return result

    def fence(self) -> None:
        def fence() -> None:
            self._producer_epoch = self._cluster.bump()

        self._do(fence)

    def marker(self) -> Marker | None:
        found: Marker | None = self._do(lambda: self._cluster.marker)
        return found

    def begin(self) -> None:
        self._open = []

    def send(self, record: Record) -> None:
        assert record.value is not None
        value = record.value

        def send() -> None:
            self._cluster.check(self._producer_epoch)
            self._open.append(value)

        self._do(send)

    def commit(self, marker: Marker) -> None:
        def commit() -> None:
            self._cluster.check(self._producer_epoch)
            self._cluster.visible += self._open
            self._cluster.marker = marker
            self._open = []

        self._do(commit)

    def abort(self) -> None:
        self._do(lambda: self._open.clear())
