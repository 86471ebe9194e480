"""Sending answers from memory and from files, to fast and slow readers."""

import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.runtime.echo import SLICE, Client, EchoNode, Served, framed, serving

from tidelog.model.disk import File, FileSlice
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.files.file import RECENT_BYTES, RealFile
from tidelog.runtime.transport.connection import (
    CHUNK_COST,
    DISK,
    INLINE_BYTES,
    JOIN_BYTES,
    NOTHING,
    SENDFILE_BYTES,
    SOCKET,
    Connection,
)
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.plain import PlainTransport

CONTENT = random.Random(1).randbytes(SENDFILE_BYTES + 2_000_000)


@pytest.fixture
def file(tmp_path: Path) -> File:
    opened = RealDisk(str(tmp_path)).open("segment")
    opened.append([CONTENT])
    return opened


def ask_slice(client: Client, position: int, length: int) -> None:
    client.sock.sendall(framed(b"f" + SLICE.pack(position, length)))


@pytest.mark.parametrize(
    "length",
    [
        0,
        1,
        INLINE_BYTES - 1,
        INLINE_BYTES,
        INLINE_BYTES + 1,
        JOIN_BYTES,
        1_000_000,
        SENDFILE_BYTES,
        SENDFILE_BYTES + 1,
        len(CONTENT) - 7,
    ],
)
def test_a_slice_of_any_size_arrives_as_it_is_in_the_file(file: File, length: int) -> None:
    with serving(EchoNode([file])) as served:
        client = served.client()
        ask_slice(client, 7, length)
        client.sock.sendall(framed(b"eafter"))
        assert client.answer() == CONTENT[7 : 7 + length]
        assert client.answer() == b"after"


def test_slices_and_memory_leave_in_the_order_asked_for(file: File) -> None:
    seed = random.Random(7)
    asked: list[tuple[bytes, bytes]] = []
    for _ in range(300):
        if seed.random() < 0.3:
            payload = seed.randbytes(seed.choice([0, 10, 5_000, JOIN_BYTES + 5]))
            asked.append((b"e" + payload, payload))
        else:
            position = seed.randrange(1_000_000)
            length = seed.choice([0, 100, INLINE_BYTES, INLINE_BYTES + 1, 200_000])
            asked.append((b"f" + SLICE.pack(position, length), CONTENT[position:][:length]))
    with serving(EchoNode([file])) as served:
        client = served.client()
        ahead = 20  # the test reads each answer this many requests later
        for number, (request, _) in enumerate(asked):
            client.sock.sendall(framed(request))
            if number >= ahead:
                assert client.answer() == asked[number - ahead][1]
        for _, expected in asked[-ahead:]:
            assert client.answer() == expected


@pytest.mark.parametrize("length", [INLINE_BYTES, SENDFILE_BYTES])
def test_a_file_cut_short_under_a_slice_closes_the_connection(file: File, length: int) -> None:
    with serving(EchoNode([file])) as served:
        client, other = served.client(), served.client()
        file.truncate(1000)
        ask_slice(client, 0, length)
        with pytest.raises(EOFError) as cut:
            client.answer()
        assert CONTENT.startswith(cut.value.args[0])
        assert other.ask(b"eserved") == b"served"


def test_a_file_cut_while_it_is_being_sent_closes_the_connection(file: File) -> None:
    with serving(EchoNode([file])) as served:
        client, other = served.client(), served.client()
        ask_slice(client, 0, len(CONTENT))
        head = client.read(4 + 1000)
        other.ask(b"e")  # by now the socket's buffer is full, and the rest waits in the file
        file.truncate(1000)
        with pytest.raises(EOFError) as cut:
            client.read(len(CONTENT) - 1000)
        assert CONTENT.startswith(head[4:])
        assert len(cut.value.args[0]) < len(CONTENT) - 1000
        assert other.ask(b"eserved") == b"served"


def test_a_removed_file_is_still_sent(file: File, tmp_path: Path) -> None:
    with serving(EchoNode([file])) as served:
        client = served.client()
        os.unlink(tmp_path / "segment")
        ask_slice(client, 0, 100_000)
        assert client.answer() == CONTENT[:100_000]


def test_a_client_that_never_reads_is_not_read_either() -> None:
    limits = Limits(unsent_bytes=100_000)
    request = framed(b"m" + struct.pack(">i", 50_000))
    with serving(limits=limits) as served:
        deaf, other = served.client(), served.client()
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        deaf.sock.setblocking(False)
        stuck = 0
        # Send until the client's own socket blocks; meanwhile another client is served.
        while stuck < 50:
            try:
                deaf.sock.send(request * 100)
                stuck = 0
            except BlockingIOError:
                stuck += 1
            assert other.ask(b"eserved") == b"served"
        queued = max(conn.unsent for conn in served.host.connections)
        assert limits.unsent_bytes < queued < limits.unsent_bytes + 2 * 50_000


def deaf(served: Served) -> Client:
    client = served.client()
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sock.setblocking(False)
    return client


def unsent(served: Served) -> int:
    return sum(conn.unsent for conn in served.host.connections)


def test_many_clients_that_never_read_hold_little_memory_together() -> None:
    limits = Limits(unsent_bytes=1_000_000, stalled_bytes=2_000_000)
    requests = framed(b"m" + struct.pack(">i", 10_000)) * 2_000
    with serving(limits=limits) as served:
        clients = [deaf(served) for _ in range(50)]
        other = served.client()
        for client in clients:
            with suppress(BlockingIOError):
                client.sock.send(requests)
            assert other.ask(b"eserved") == b"served"
        # Wait until no more frames are handled.
        frames = -1
        while frames != served.node.frames - 1:
            frames = served.node.frames
            assert other.ask(b"eserved") == b"served"
        assert 1_000_000 < unsent(served) < 4_000_000
        assert len(served.host.connections) == 51


def test_those_with_the_most_unread_answers_are_closed_before_memory_runs_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(stalled_bytes=5_000_000)
    with serving(limits=limits) as served:
        clients = [deaf(served) for _ in range(20)]
        other = served.client()
        for client in clients:
            client.sock.send(framed(b"m" + struct.pack(">i", 8_000_000)))
            other.ask(b"e")
        while len(served.node.disconnected) < 15 or unsent(served) >= 20_000_000:
            other.ask(b"e")
        assert other.ask(b"eserved") == b"served"
    assert "bytes of responses" in caplog.text


def test_f63_an_answer_over_the_limit_of_all_closes_its_connection_and_not_the_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(limits=Limits(stalled_bytes=4_000_000)) as served:
        client, other = deaf(served), served.client()
        client.sock.send(framed(b"m" + struct.pack(">i", 30_000_000)))
        while not served.node.disconnected:
            assert other.ask(b"eserved") == b"served"
        assert len(served.host.connections) == 1
    assert "bytes of responses" in caplog.text


def test_requests_that_wait_take_little_memory_together() -> None:
    """Each client pipelines many requests behind a request that is not answered yet."""
    limits = Limits(held_bytes=500_000)
    pipelined = framed(b"p" + struct.pack(">i", 3_600_000)) + framed(b"e" + bytes(500)) * 1_000
    with serving(limits=limits) as served:
        clients = [served.client() for _ in range(60)]
        other = served.client()
        for client in clients:
            client.sock.setblocking(False)
            with suppress(BlockingIOError):
                client.sock.send(pipelined)
            assert other.ask(b"eserved") == b"served"
        held = [conn.held for conn in served.host.connections if conn.held is not None]
        assert len(held) == 60
        assert sum(one.capacity for one in held) < 2_000_000


def test_a_slow_reader_gets_every_answer_once_it_reads() -> None:
    with serving(limits=Limits(unsent_bytes=10_000)) as served:
        slow, other = served.client(), served.client()
        requests = 400
        slow.sock.sendall(framed(b"m" + struct.pack(">i", 20_000)) * requests)
        other.ask(b"e")
        for _ in range(requests):
            assert len(slow.answer()) == 20_000
        assert slow.ask(b"estill here") == b"still here"


def test_a_file_that_let_its_descriptor_go_is_not_taken_for_another(
    file: File, tmp_path: Path
) -> None:
    with serving(EchoNode([file])) as served:
        client = served.client()
        client.ask(b"e")
        file.close()
        with open(tmp_path / "other", "wb+") as taking_its_number:
            taking_its_number.write(bytes(len(CONTENT)))
            taking_its_number.flush()
            ask_slice(client, 0, 1_000_000)
            assert client.answer() == CONTENT[:1_000_000]


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield Connection(1, PlainTransport(ours), "peer", FrameSplitter(1000), 0), theirs


def test_unsent_counts_what_the_queue_holds(
    file: File, pair: tuple[Connection, socket.socket]
) -> None:
    def held() -> int:
        sizes = (len(one) for one in conn.waiting if not isinstance(one, FileSlice))
        return CHUNK_COST * len(conn.waiting) + sum(sizes)

    conn, theirs = pair
    conn.enqueue([b"a", bytes(1_000_000), FileSlice(file, 0, 1_000_000), b"end"])
    assert conn.unsent == held() > 1_000_000
    conn.send()
    assert conn.waits_for == SOCKET
    assert 0 < conn.unsent < 1_001_000
    received = bytearray()
    while conn.waits_for:
        assert conn.unsent == held()
        received += theirs.recv(1 << 20)
        conn.send()
    assert conn.unsent == 0
    assert conn.waiting == []
    while len(received) < 2_000_004:
        received += theirs.recv(1 << 20)
    assert received == b"a" + bytes(1_000_000) + CONTENT[:1_000_000] + b"end"


def cold_file(tmp_path: Path) -> RealFile:
    """A file that is on the disk and, if the file system allows it, not in the page cache."""
    file = RealDisk(tmp_path).open("cold")
    assert isinstance(file, RealFile)
    file.append([CONTENT, bytes(RECENT_BYTES)])
    file.sync()
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def test_a_slice_that_is_not_in_memory_waits_for_the_disk_and_not_in_send(
    tmp_path: Path, pair: tuple[Connection, socket.socket]
) -> None:
    conn, theirs = pair
    conn.enqueue([b"head", FileSlice(cold_file(tmp_path), 0, 100_000)])
    conn.send()
    assert theirs.recv(4) == b"head"
    if conn.waits_for == DISK:
        conn.cold_read()()
        conn.send(is_warm=True)
    assert conn.waits_for == NOTHING
    assert theirs.recv(100_000, socket.MSG_WAITALL) == CONTENT[:100_000]


def test_cold_slices_arrive_as_they_are_in_the_file(tmp_path: Path) -> None:
    with serving(EchoNode([cold_file(tmp_path)])) as served:
        client, other = served.client(), served.client()
        for position, length in ((5_000_000, 1000), (0, len(CONTENT)), (3_000_000, 20_000)):
            ask_slice(client, position, length)
            assert other.ask(b"eserved") == b"served"
            assert client.answer() == CONTENT[position : position + length]
