"""Ten thousand clients that stall in the TLS handshake take bounded memory."""

import gc
import os
import resource
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.unit.runtime.echo import serving
from tests.unit.runtime.transport.certificates import LISTENER, authority, settings

from tidelog.runtime.transport.descriptors import raise_limit
from tidelog.runtime.transport.handshakes import MOST_BEGUN
from tidelog.runtime.transport.tls_contexts import TlsContexts

STALLED = 10_000
BYTES_PER_HANDSHAKE = 100_000
"""What a begun handshake may take, mostly in OpenSSL; about half of it was measured."""
BYTES_PER_CONNECTION = 2_000

BEGIN_AND_STALL = """
import socket, ssl, sys
address, number = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
outgoing = ssl.MemoryBIO()
session = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
try:
    session.do_handshake()
except ssl.SSLWantReadError:
    hello = outgoing.read()
held = []
for _ in range(number):
    held.append(socket.create_connection(address))
    held[-1].sendall(hello)
print("stalled", flush=True)
sys.stdin.read()
"""


@contextmanager
def stalled_clients(address: tuple[str, int], number: int) -> Iterator[None]:
    """Clients in a separate process, because one process has too few descriptors for both ends."""
    command = [sys.executable, "-c", BEGIN_AND_STALL, *map(str, address), str(number)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"stalled\n"
        yield
        child.communicate()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def descriptors() -> Iterator[int]:
    """How many connections this process can hold beside what it needs itself."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield min(STALLED, raise_limit() - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_f89_ten_thousand_stalled_handshakes_take_bounded_memory(descriptors: int) -> None:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(cadata=authority().certificate_pem)
    with serving(contexts=TlsContexts({LISTENER: settings()})) as served:
        known = served.client().encrypt(trusting)
        assert known.ask(b"ehello") == b"hello"
        gc.collect()
        before = resident_bytes()
        with stalled_clients(served.address, descriptors):
            assert known.ask(b"eserved") == b"served"
            assert served.client().encrypt(trusting).ask(b"enew") == b"new"
            most = MOST_BEGUN * BYTES_PER_HANDSHAKE + descriptors * BYTES_PER_CONNECTION
            assert resident_bytes() - before < most
        assert known.ask(b"estill") == b"still"
