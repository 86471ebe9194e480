"""Measure the CPU time per request of the host's event loop alone, without a broker.

    python bench/loop.py [--seconds N] [--clients N] [--window N]

A minimal node answers a produce-like frame of 16 KB with 60 bytes, and a small fetch-like frame
with a slice of a file. The loop runs in a child process, whose CPU time is read before and after.
"""

import argparse
import os
import resource
import selectors
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tidelog.model.disk import Disk, File, FileSlice
from tidelog.model.events import Event, FrameReceived
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound, Send, Stop
from tidelog.runtime.clock import HostClock
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.loop import Host
from tidelog.runtime.process import keep_freed_memory
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.listeners import bind

LENGTH = struct.Struct(">i")
USAGE = struct.Struct(">dq")
SCRATCH = bytearray(4 << 20)
ANSWER = LENGTH.pack(56) + bytes(56)


class Load(NamedTuple):
    """A request that clients send repeatedly, and the size of its answer."""

    name: str
    request: bytes
    answer_size: int


def produce(size: int) -> Load:
    return Load(f"{size:>9,} B in, 60 B out", LENGTH.pack(size) + b"p" + bytes(size - 1), 60)


def fetch(size: int, kind: str = "tail") -> Load:
    request = LENGTH.pack(100) + kind[:1].encode() + LENGTH.pack(size) + bytes(95)
    return Load(f"100 B in, {size:>9,} B out, {kind} of a file", request, size + 4)


class BenchNode:
    """Answers each frame. The first byte of the frame selects the answer.

    p: 60 bytes. t, h: the file's tail or head. u: the process's CPU seconds and resident bytes.
    """

    def __init__(self, file: File) -> None:
        self._file = file

    def start(self) -> list[Outbound]:
        return []

    @property
    def is_ready(self) -> bool:
        return True

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        if not isinstance(event, FrameReceived):
            return []
        match chr(event.frame[0]):
            case "p":
                return [Send(event.conn, [ANSWER])]
            case "t" | "h" as kind:
                (size,) = LENGTH.unpack_from(event.frame, 1)
                position = self._file.size - size if kind == "t" else 0
                part = FileSlice(self._file, position, size)
                return [Send(event.conn, [LENGTH.pack(size), part])]
            case _:
                used = resource.getrusage(resource.RUSAGE_SELF)
                said = USAGE.pack(used.ru_utime + used.ru_stime, resident_bytes())
                return [Send(event.conn, [LENGTH.pack(len(said)) + said])]

    def next_deadline(self) -> Millis | None:
        return None

    def shutdown(self, now: Millis) -> list[Outbound]:
        return [Stop(0, "measured")]


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@contextmanager
def served_apart(disk: Disk) -> Iterator[tuple[str, int]]:
    """Serve in a child process, and yield its address."""
    listening = bind("PLAINTEXT", "127.0.0.1", 0)
    listening.sock.listen()
    child = os.fork()
    if child == 0:
        keep_freed_memory()
        node = BenchNode(disk.open("file"))
        Host(node, [listening], Limits(), HostClock()).run(lambda: None)
        os._exit(0)
    address = listening.sock.getsockname()
    listening.sock.close()
    try:
        yield address
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def usage(sock: socket.socket) -> tuple[float, int]:
    sock.sendall(LENGTH.pack(1) + b"u")
    cpu, rss = USAGE.unpack(sock.recv(4 + USAGE.size, socket.MSG_WAITALL)[4:])
    return cpu, rss


class Pipelining:
    """A client that keeps `window` requests in flight."""

    def __init__(self, address: tuple[str, int], load: Load, window: int) -> None:
        self.sock = socket.create_connection(address)
        self._load = load
        self._received = 0
        self._window = window
        self.answered = 0

    def begin(self) -> None:
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(self._window):
            self.sock.sendall(self._load.request)

    def turn(self) -> None:
        """Receive answers, and send a new request for each answer."""
        self._received += self.sock.recv_into(SCRATCH)
        answers = self._received // self._load.answer_size - self.answered
        self.answered += answers
        if answers:
            self.sock.sendall(self._load.request * answers)


def measure(disk: Disk, load: Load, clients: int, window: int, seconds: float) -> None:
    with served_apart(disk) as address:
        control = socket.create_connection(address)
        busy = [Pipelining(address, load, window) for _ in range(clients)]
        selector = selectors.DefaultSelector()
        for one in busy:
            selector.register(one.sock, selectors.EVENT_READ, one)
            one.begin()
        before, start = usage(control)[0], time.monotonic()
        counted = sum(one.answered for one in busy)
        while time.monotonic() - start < seconds:
            for key, _ in selector.select():
                key.data.turn()
        counted = sum(one.answered for one in busy) - counted
        elapsed = time.monotonic() - start
        after, rss = usage(control)
        for one in busy:
            one.sock.close()
        control.close()
    each = (after - before) / counted
    size = len(load.request) + load.answer_size
    print(
        f"{load.name:42} {counted / elapsed:>9,.0f}/s  {each * 1e6:>8.1f} us CPU"
        f"  {each / size * 1e9:>6.2f} s/GB  {rss / 2**20:>5.1f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--window", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        disk = RealDisk(directory)
        disk.open("file").append([os.urandom(32 << 20)])
        for load in (
            produce(128),
            produce(16_384),
            produce(1 << 20),
            fetch(1_024),
            fetch(16_384),
            fetch(65_536),
            fetch(1 << 20),
            fetch(1_024, "head"),
            fetch(1 << 20, "head"),
        ):
            measure(disk, load, options.clients, options.window, options.seconds)


if __name__ == "__main__":
    main()
