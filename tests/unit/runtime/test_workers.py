"""fsync in threads: a request is answered after its own fsync, even if other fsyncs still run."""

import threading
import weakref

import pytest
from tests.cluster.foreground import await_that
from tests.unit.runtime.echo import EchoNode, framed, serving

from tidelog.runtime.workers import Workers


class GatedFile:
    """A file whose fsync ends, or fails, when the gate opens."""

    def __init__(self, *, is_open: bool = True, error: OSError | None = None) -> None:
        self.gate = threading.Event()
        self.error = error
        self.synced_in: list[int] = []
        if is_open:
            self.gate.set()

    def sync(self) -> None:
        self.gate.wait()
        self.synced_in.append(threading.get_ident())
        if self.error is not None:
            raise self.error


def test_a_flush_is_answered_once_its_files_are_synced() -> None:
    file = GatedFile()
    with serving(EchoNode([file])) as served:
        assert served.client().ask(b"y\x00") == b"ok"
    assert len(file.synced_in) == 1
    assert file.synced_in[0] != threading.get_ident()


def test_a_slow_flush_holds_up_neither_requests_nor_other_flushes() -> None:
    slow, quick = GatedFile(is_open=False), GatedFile()
    with serving(EchoNode([slow, quick])) as served:
        waiting, other = served.client(), served.client()
        waiting.sock.sendall(framed(b"y\x00"))
        assert other.ask(b"y\x01") == b"ok"
        assert other.ask(b"eserved") == b"served"
        assert slow.synced_in == []
        slow.gate.set()
        assert waiting.answer() == b"ok"


def test_a_failed_fsync_is_told() -> None:
    with serving(EchoNode([GatedFile(error=OSError(5, "Input/output error"))])) as served:
        assert b"Input/output error" in served.client().ask(b"y\x00")


def test_an_idle_worker_does_not_keep_the_files_of_its_last_job() -> None:
    """Otherwise the space of deleted segments would not be freed before the next job."""
    freed = threading.Event()
    file = GatedFile()
    weakref.finalize(file, freed.set)
    workers = Workers(1, lambda: None)
    workers.submit(file.sync, lambda error: None)
    del file

    def is_freed() -> bool:
        workers.finish()
        return freed.is_set()

    await_that(is_freed, True)
    workers.stop()


def test_jobs_are_told_in_the_order_in_which_they_end() -> None:
    files = [GatedFile(is_open=False) for _ in range(4)]
    rung = threading.Semaphore(0)
    workers = Workers(4, rung.release)
    finished: list[int] = []
    for number, file in enumerate(files):
        workers.submit(file.sync, lambda error, number=number: finished.append(number))
    for number in (2, 0, 3, 1):
        files[number].gate.set()
        rung.acquire()
        workers.finish()
    workers.stop()
    assert finished == [2, 0, 3, 1]


def test_more_jobs_than_threads_all_end() -> None:
    file = GatedFile()
    rung = threading.Semaphore(0)
    workers = Workers(4, rung.release)
    finished: list[str | None] = []
    for _ in range(100):
        workers.submit(file.sync, finished.append)
    for _ in range(100):
        rung.acquire()
    assert finished == []
    workers.finish()
    assert finished == [None] * 100
    assert len(file.synced_in) == 100
    workers.stop()


def test_where_no_thread_can_be_started_jobs_are_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    file = GatedFile()
    file.gate.set()
    rung = threading.Semaphore(0)
    finished: list[Exception | None] = []
    workers = Workers(4, rung.release)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        workers.submit(file.sync, finished.append)
        assert rung.acquire(blocking=False)
    workers.submit(file.sync, finished.append)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        workers.submit(file.sync, finished.append)
    rung.acquire()
    rung.acquire()
    workers.finish()
    assert finished == [None, None, None]
    workers.stop()
