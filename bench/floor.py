"""Measure the CPU that the kernel alone needs to move records through one broker or three.

    .venv/bin/python bench/floor.py --work DIR [--gigabytes 4] [--repeats 3]

A process receives bytes from a connection and appends them to six files, one request after the
other. It has no protocol and no checks. With three replicas it also sends the bytes from the files,
with `sendfile`, to two more processes that do the same. Every broker must do at least this work.
The result is the CPU of these processes for each GB that the client sent. On this machine, no
broker that moves records in this way can use less CPU.
"""

import argparse
import os
import resource
import shutil
import socket
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memory import fill_page_cache

FILES = 6
REQUEST = 1_000_000
"""The size in bytes of the largest batch that the producer of the duel sends (see `bench/run`)."""


def connect() -> tuple[socket.socket, socket.socket]:
    """The two ends of a TCP connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        far = socket.create_connection(listening.getsockname())
        near, _ = listening.accept()
    return near, far


def receive(source: socket.socket, into: memoryview) -> int:
    """Receive until the buffer is full or the peer closes; return the number of bytes."""
    got = 0
    while got < len(into) and (more := source.recv_into(into[got:])):
        got += more
    return got


def serve(source: socket.socket, copies: list[socket.socket], directory: Path) -> None:
    directory.mkdir()
    files = [(directory / str(number)).open("w+b", buffering=0) for number in range(FILES)]
    ends = [0] * FILES
    request = memoryview(bytearray(REQUEST))
    turn = 0
    while got := receive(source, request):
        at = turn % FILES
        os.write(files[at].fileno(), request[:got])
        for copy in copies:
            sent = 0
            while sent < got:
                sent += os.sendfile(copy.fileno(), files[at].fileno(), ends[at] + sent, got - sent)
        ends[at] += got
        turn += 1


def forked(work: Callable[[], None]) -> int:
    if pid := os.fork():
        return pid
    try:
        work()
    finally:
        os._exit(0)


def measure(directory: Path, size: int, copies: int) -> float:
    """CPU seconds per GB, summed over all processes that write."""
    near, far = connect()
    links = [connect() for _ in range(copies - 1)]

    def lead() -> None:
        near.close()
        serve(far, [here for here, _ in links], directory / "leader")

    def follow(number: int) -> None:
        near.close()
        for here, _ in links:
            here.close()
        serve(links[number][1], [], directory / f"follower-{number}")

    def send() -> None:
        for here, there in links:
            here.close()
            there.close()
        far.close()
        piece = os.urandom(REQUEST)
        for _ in range(size // REQUEST):
            near.sendall(piece)

    writers = [forked(lead), *(forked(partial(follow, n)) for n in range(copies - 1))]
    sender = forked(send)
    for end in (near, far, *(end for link in links for end in link)):
        end.close()
    os.waitpid(sender, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for pid in writers:
        os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    written = sum(path.stat().st_size for path in directory.glob("*/*"))
    assert written == copies * (size // REQUEST) * REQUEST, f"{written} bytes were written"
    taken = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return taken / (size / 1e9)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--work", type=Path, required=True, help="a directory on the same disk")
    options.add_argument("--gigabytes", type=float, default=4)
    options.add_argument("--repeats", type=int, default=3)
    given = options.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for copies in (1, 3):
        values = []
        for turn in range(given.repeats):
            directory = given.work / f"{copies}-{turn}"
            directory.mkdir()
            fill_page_cache(given.work)
            values.append(measure(directory, int(given.gigabytes * 1e9), copies))
            shutil.rmtree(directory)
        print(
            f"copies {copies}: {statistics.median(values):.2f} CPU s/GB "
            f"({min(values):.2f} to {max(values):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
