"""Ten thousand silent clients, and a process without free descriptors."""

import gc
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.unit.runtime.echo import Client, Served, serving
from tests.unit.runtime.exhaustion import no_descriptor_left

from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.descriptors import Shares, raise_limit
from tidelog.runtime.transport.limits import Limits

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
    """Connections from a separate process, because one process has too few for both ends."""
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
    raise_limit()
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
    with serving() as served:
        leaving, staying, late = served.client(), served.client(), Client()
        leaving.ask(b"e")
        staying.ask(b"e")
        # The client's socket already exists, so only the host's accept needs a descriptor.
        with no_descriptor_left():
            late.connect(served.address)
            while "cannot accept" not in caplog.text:
                assert staying.ask(b"eserved") == b"served"
            leaving.sock.close()
            assert late.ask(b"ein") == b"in"
        late.sock.close()
    assert caplog.text.count("cannot accept") == 1


def test_f65_silent_clients_make_way_and_those_that_spoke_stay() -> None:
    limits = Limits(descriptors=Shares(files=10, clients=5))
    with serving(limits=limits) as served:
        speaking = served.client()
        speaking.ask(b"e")
        silent = [served.client() for _ in range(20)]
        later = served.client()
        assert later.ask(b"ein") == b"in"
        assert speaking.ask(b"estill") == b"still"
        assert all(client.is_closed_by_peer() for client in silent[:10])
        assert len(served.host.connections) <= 5


def test_f65_half_a_request_is_silence_too() -> None:
    limits = Limits(descriptors=Shares(files=10, clients=3))
    with serving(limits=limits) as served:
        slow = [served.client() for _ in range(3)]
        for client in slow:
            client.sock.sendall(b"\0\0\1\0abc")
        later = served.client()
        assert later.ask(b"ein") == b"in"
        assert slow[0].is_closed_by_peer()


def test_f65_one_address_cannot_take_all_connections(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(connections=LimitConnections(per_ip=2))
    with serving(limits=limits) as served:
        first, second = served.client(), served.client()
        first.ask(b"e")
        second.ask(b"e")
        assert all(served.client().is_closed_by_peer() for _ in range(20))
        first.sock.close()
        while served.node.disconnected == []:
            second.ask(b"e")
        assert served.client().ask(b"ein") == b"in"
    assert len(served.node.connected) == 3
    assert caplog.text.count("max.connections.per.ip") == 3
