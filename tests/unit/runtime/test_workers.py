"""fsync in threads: an answer comes after its own fsync, in the loop's thread, and never late."""

import threading

from tests.unit.runtime.echo import EchoNode, framed, serving

from tidelog.model.outbound import Flush
from tidelog.runtime.workers import Workers


class GatedFile:
    """A file whose fsync ends when told to, or fails."""

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


def test_flushes_are_given_in_the_order_in_which_they_end() -> None:
    files = [GatedFile(is_open=False) for _ in range(4)]
    rung = threading.Semaphore(0)
    workers = Workers(rung.release)
    for token, file in enumerate(files):
        workers.flush(Flush(token, (file,)))
    ended = []
    for token in (2, 0, 3, 1):
        files[token].gate.set()
        rung.acquire()
        ended += [flushed.token for flushed in workers.take()]
    workers.stop()
    assert ended == [2, 0, 3, 1]


def test_more_flushes_than_threads_all_end() -> None:
    file = GatedFile()
    rung = threading.Semaphore(0)
    workers = Workers(rung.release)
    for token in range(100):
        workers.flush(Flush(token, (file, file)))
    for _ in range(100):
        rung.acquire()
    assert sorted(flushed.token for flushed in workers.take()) == list(range(100))
    assert len(file.synced_in) == 200
    workers.stop()
