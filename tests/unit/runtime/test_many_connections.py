"""Ten thousand clients that say nothing, and a process that has run out of descriptors."""

import gc
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.unit.runtime.echo import Client, Served, serving

from tidelog.runtime.process import raise_descriptor_limit

IDLE = 10_000
BYTES_PER_IDLE_CONNECTION = 1_500


CONNECT_AND_WAIT = """
import socket, sys
address = (sys.argv[1], int(sys.argv[2]))
held = [socket.create_connection(address) for _ in range(int(sys.argv[3]))]
print("connected", flush=True)
sys.stdin.read()
"""


@contextmanager
def idle_clients(address: tuple[str, int], number: int) -> Iterator[None]:
    """Connections held by a process of their own: both ends would not fit into one's limit."""
    command = [sys.executable, "-c", CONNECT_AND_WAIT, *map(str, address), str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"connected\n"
        yield
        child.communicate()


def await_connections(served: Served, client: Client, number: int) -> None:
    while len(served.node.connected) - len(served.node.disconnected) != number:
        client.ask(b"e")


@pytest.fixture
def descriptors() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_ten_thousand_idle_connections_cost_little(descriptors: None) -> None:
    with serving() as served:
        client = served.client()
        client.ask(b"e")
        gc.collect()
        tracemalloc.start()
        with idle_clients(served.address, IDLE):
            await_connections(served, client, IDLE + 1)
            used, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert used / IDLE < BYTES_PER_IDLE_CONNECTION
            assert client.ask(b"eserved") == b"served"
        await_connections(served, client, 1)


def test_without_descriptors_accepting_rests_and_resumes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving() as served:
        leaving, staying, late = served.client(), served.client(), Client()
        leaving.ask(b"e")
        staying.ask(b"e")
        # The client's sockets exist already: only the host's accept needs a new descriptor.
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest_descriptor() + 1, hard))
        spares = take_all_descriptors()
        try:
            late.connect(served.address)
            while "cannot accept" not in caplog.text:
                assert staying.ask(b"eserved") == b"served"
            leaving.sock.close()
            assert late.ask(b"ein") == b"in"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for spare in spares:
                os.close(spare)
            late.sock.close()
    assert caplog.text.count("cannot accept") == 1


def highest_descriptor() -> int:
    return max(map(int, os.listdir("/proc/self/fd")))


def take_all_descriptors() -> list[int]:
    taken: list[int] = []
    with suppress(OSError):
        while True:
            taken.append(os.dup(0))
    return taken
