"""Encrypted connections: whole answers, refused certificates, and peers that break the protocol."""

import logging
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.runtime.echo import SLICE, Client, EchoNode, Served, framed, serving
from tests.unit.runtime.transport.certificates import (
    EXPIRED,
    HOSTS,
    LISTENER,
    authority,
    pem_file,
    properties,
    settings,
)

from tidelog.clusters.certificate_authority import Issued
from tidelog.config.tls_settings import TlsSettings, tls_settings
from tidelog.model.outbound import LimitConnections
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.transport import handshakes
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.tls_contexts import TlsContexts
from tidelog.runtime.transport.tls_session import TlsFailure, TlsSession

LARGE = 3_000_000


def contexts(own: TlsSettings | None = None, others: TlsSettings | None = None) -> TlsContexts:
    return TlsContexts({LISTENER: own or settings()}, {LISTENER: others or settings()})


def client_context(issued: Issued | None = None, trusted: str | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=trusted or authority().certificate_pem)
    if issued is not None:
        TlsClientFiles.load(context, issued)
    return context


class TlsClientFiles:
    """Gives a client its key, which OpenSSL reads from files only."""

    directory: Path

    @classmethod
    def load(cls, context: ssl.SSLContext, issued: Issued) -> None:
        context.load_cert_chain(pem_file(cls.directory, issued, "client.pem"))


@pytest.fixture(autouse=True)
def client_files(tmp_path: Path) -> None:
    TlsClientFiles.directory = tmp_path


def encrypted(served: Served, issued: Issued | None = None) -> Client:
    return served.client().encrypt(client_context(issued))


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(contexts=contexts()) as host:
        yield host


def test_requests_of_any_size_are_answered(served: Served) -> None:
    client = encrypted(served)
    for size in (0, 1, 100, 16_383, 16_384, 16_385, 300_000, LARGE):
        payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
        assert client.ask(b"e" + payload) == payload


def test_pipelined_requests_of_all_sizes_are_answered_in_order(served: Served) -> None:
    client = encrypted(served)
    payloads = [bytes([65 + n]) * size for n, size in enumerate((10, 200_000, 5, 70_000, 0, 90))]
    client.sock.sendall(b"".join(framed(b"e" + payload) for payload in payloads))
    assert [client.answer() for _ in payloads] == payloads


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_served(served: Served, version: ssl.TLSVersion) -> None:
    context = client_context()
    context.minimum_version = context.maximum_version = version
    assert served.client().encrypt(context).ask(b"ehello") == b"hello"


def test_a_file_is_sent_to_a_slow_reader_byte_by_byte_the_same(tmp_path: Path) -> None:
    content = bytes(range(251)) * (LARGE // 251)
    file = RealDisk(str(tmp_path)).open("segment")
    file.append([content])
    with serving(EchoNode([file]), contexts=contexts()) as served:
        client = served.client()
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        client.encrypt(client_context())
        request = framed(b"f" + SLICE.pack(7, len(content) - 7))
        client.sock.sendall(request * 3 + framed(b"eend"))
        for _ in range(3):
            assert client.answer() == content[7:]
        assert client.answer() == b"end"


def test_a_request_that_arrives_with_the_end_of_the_handshake_is_answered(served: Served) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    sock = served.client().sock
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    sock.sendall(outgoing.read())
    while True:
        incoming.write(sock.recv(65_536))
        try:
            session.do_handshake()
            break
        except ssl.SSLWantReadError:
            pass
    session.write(framed(b"ehello"))
    sock.sendall(outgoing.read())  # the end of the handshake and the request, in one piece
    answer = b""
    while len(answer) < 9:
        incoming.write(sock.recv(65_536))
        with suppress(ssl.SSLWantReadError):
            answer += session.read(100)
    assert answer == framed(b"hello")


def test_a_client_that_says_farewell_gets_its_answers_first(served: Served) -> None:
    client = encrypted(served)
    client.sock.sendall(framed(b"m" + struct.pack(">i", LARGE)))
    assert client.answer() == bytes(LARGE)
    assert isinstance(client.sock, ssl.SSLSocket)
    client.sock.unwrap().close()
    assert encrypted(served).ask(b"eserved") == b"served"


# -- Certificates ----------------------------------------------------------------------------------


def test_the_subject_of_the_clients_certificate_is_reported() -> None:
    alice = authority().issue("alice")
    with serving(contexts=contexts(settings(ssl_client_auth="required"))) as served:
        assert encrypted(served, alice).ask(b"ehello") == b"hello"
        assert served.node.subjects == ["CN=alice"]


def test_a_client_without_a_certificate_is_anonymous_where_it_is_only_requested() -> None:
    with serving(contexts=contexts(settings(ssl_client_auth="requested"))) as served:
        assert encrypted(served).ask(b"ehello") == b"hello"
        assert served.node.subjects == [""]


@pytest.mark.parametrize(
    ("auth", "which"),
    [
        ("required", "missing"),
        ("required", "expired"),
        ("required", "of another authority"),
        ("requested", "expired"),
        ("requested", "of another authority"),
    ],
)
def test_a_client_that_does_not_belong_is_refused(
    which: str, auth: str, caplog: pytest.LogCaptureFixture
) -> None:
    issued = {
        "missing": None,
        "expired": authority().issue("alice", valid_for=EXPIRED),
        "of another authority": authority("another CA").issue("alice"),
    }[which]
    with serving(contexts=contexts(settings(ssl_client_auth=auth))) as served:
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            encrypted(served, issued).ask(b"ehello")
        assert served.node.subjects == []
    lines = [line for line in caplog.messages if "the TLS handshake failed" in line]
    assert len(lines) == 1


def test_a_peer_is_connected_to_with_tls() -> None:
    with serving(contexts=contexts(settings(ssl_client_auth="required"))) as peer:
        node = EchoNode()
        node.tls_listener = LISTENER
        with serving(node, contexts=contexts()) as served:
            client = encrypted(served)
            assert client.ask(b"c" + struct.pack(">i", peer.address[1]) + b"127.0.0.1") == (
                b"connected"
            )
            payload = bytes(LARGE)
            assert client.ask(b"re" + payload) == payload
            assert peer.node.subjects == ["CN=broker"]
            peer.stop()
            assert client.answer() == b"lost"


@pytest.mark.parametrize("wrong", ["host name", "authority", "expired"])
def test_a_peer_with_the_wrong_certificate_is_refused(wrong: str) -> None:
    issued = {
        "host name": authority().issue("broker", ["elsewhere.example.org"]),
        "authority": authority("another CA").issue("broker", HOSTS),
        "expired": authority().issue("broker", HOSTS, valid_for=EXPIRED),
    }[wrong]
    node = EchoNode()
    node.tls_listener = LISTENER
    with (
        serving(contexts=contexts(settings(issued))) as peer,
        serving(node, contexts=contexts()) as served,
    ):
        answer = encrypted(served).ask(b"c" + struct.pack(">i", peer.address[1]) + b"127.0.0.1")
        assert answer.startswith(b"failed: its certificate is refused: ")
        assert peer.node.subjects == []


def test_the_host_name_is_not_checked_if_the_algorithm_is_empty() -> None:
    node = EchoNode()
    node.tls_listener = LISTENER
    issued = authority().issue("broker", ["elsewhere.example.org"])
    unchecked = settings(ssl_endpoint_identification_algorithm="")
    with (
        serving(contexts=contexts(settings(issued))) as peer,
        serving(node, contexts=contexts(others=unchecked)) as served,
    ):
        answer = encrypted(served).ask(b"c" + struct.pack(">i", peer.address[1]) + b"127.0.0.1")
        assert answer == b"connected"


def serial(client: Client) -> str:
    assert isinstance(client.sock, ssl.SSLSocket)
    certificate = client.sock.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_new_certificates_are_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidelog.runtime.transport.tls_contexts.LOOK_MS", 0)
    caplog.set_level(logging.INFO)
    path = pem_file(tmp_path, authority().issue("broker", HOSTS))
    given = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}
    own = tls_settings(given, LISTENER, is_sasl=False)
    with serving(contexts=contexts(own)) as served:
        before = encrypted(served)
        path.write_text("torn")
        assert serial(encrypted(served)) == serial(before)
        pem_file(tmp_path, authority().issue("broker", HOSTS))
        assert serial(encrypted(served)) != serial(before)
        assert before.ask(b"eserved") == b"served"
    assert [line.split(":")[0] for line in caplog.messages if "certificates" in line] == [
        "PLAINTEXT keeps its old certificates",
        "PLAINTEXT uses new certificates, because its files have changed",
    ]


def test_a_cipher_suite_and_a_version_can_be_demanded() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    with serving(contexts=contexts(settings(ssl_cipher_suites=suite))) as served:
        client = encrypted(served)
        assert isinstance(client.sock, ssl.SSLSocket)
        assert client.sock.cipher() == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2", 256)
        newest = client_context()
        newest.minimum_version = ssl.TLSVersion.TLSv1_3
        with pytest.raises((ssl.SSLError, ConnectionError)):
            served.client().encrypt(newest)


# -- Peers that break the protocol -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (framed(b"\0\x12\0\3"), "not TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "not TLS"),
        (b"\x16\x03\x01\xff\xff" + bytes(70_000), "packet length too long"),
        (b"\x16\x03\x01\0\4\1\0\0\0", "length"),
        (b"\x16" * 100, "not TLS"),
        (b"", "it closed the connection"),
    ],
)
def test_bytes_that_are_not_tls_end_the_connection_with_one_line(
    sent: bytes, reason: str, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    client = served.client()
    client.sock.sendall(sent)
    with suppress(OSError):  # the host may have closed the connection before
        client.sock.shutdown(socket.SHUT_WR)
        while client.sock.recv(1000):
            pass
    assert encrypted(served).ask(b"eserved") == b"served"
    lines = [line for line in caplog.messages if "the TLS handshake failed" in line]
    assert len(lines) == 1
    assert reason in lines[0]
    assert len(served.node.connected) == 1


def test_garbage_after_the_handshake_ends_the_connection_with_one_line(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    client = encrypted(served)
    assert client.ask(b"ehello") == b"hello"
    with socket.socket(fileno=client.sock.detach()) as raw:
        raw.sendall(b"\x17\x03\x03\0\x20" + bytes(32))
        while raw.recv(1000):
            pass
    other = encrypted(served)
    assert other.ask(b"eserved") == b"served"
    assert len(served.node.disconnected) == 1
    assert len([line for line in caplog.messages if ": closed: " in line]) == 1


def test_f89_a_handshake_that_stalls_is_closed_after_its_deadline(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidelog.runtime.transport.gateway.DEADLINE_MS", 200)
    with serving(contexts=contexts()) as served:
        silent, half = served.client(), served.client()
        half.sock.sendall(b"\x16\x03\x01")
        assert silent.is_closed_by_peer()
        assert half.is_closed_by_peer()
        assert encrypted(served).ask(b"eserved") == b"served"
    assert len([line for line in caplog.messages if "is not complete after" in line]) == 2


def hello() -> bytes:
    """The first bytes of a handshake."""
    outgoing = ssl.MemoryBIO()
    session = client_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def test_f89_of_too_many_begun_handshakes_the_oldest_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshakes, "MOST_BEGUN", 3)
    with serving(contexts=contexts()) as served:
        stalled = []
        for _ in range(5):
            client = served.client()
            client.sock.sendall(hello())
            assert client.sock.recv(1) == b"\x16"
            stalled.append(client)
        assert encrypted(served).ask(b"eserved") == b"served"
        for client in stalled[:2]:
            while client.sock.recv(10_000):
                pass
        newest = stalled[-1].sock
        newest.setblocking(False)
        assert newest.recv(10_000)
        with pytest.raises(BlockingIOError):
            newest.recv(10_000)


def test_f89_stalled_handshakes_count_as_connections() -> None:
    limits = Limits(connections=LimitConnections(per_ip=2))
    with serving(limits=limits, contexts=contexts()) as served:
        stalled = [served.client() for _ in range(2)]
        for client in stalled:
            client.sock.sendall(hello())
            assert client.sock.recv(1) == b"\x16"
        assert served.client().is_closed_by_peer()
        stalled[0].sock.close()
        while True:
            try:
                assert encrypted(served).ask(b"eserved") == b"served"
                return
            except (ConnectionError, ssl.SSLError):
                continue  # the host has not noticed the end of the handshake yet


def test_a_client_cannot_renegotiate(served: Served) -> None:
    context = client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert TlsContexts({LISTENER: settings()}).server(LISTENER, 0).options & ssl.OP_NO_RENEGOTIATION
    assert served.client().encrypt(context).ask(b"ehello") == b"hello"


def test_inline_certificates_and_properties_are_those_of_the_listener() -> None:
    given = {f"listener.name.plaintext.{key}": value for key, value in properties().items()}
    own = tls_settings(given, LISTENER, is_sasl=False)
    with serving(contexts=contexts(own)) as served:
        assert encrypted(served).ask(b"ehello") == b"hello"


@pytest.mark.parametrize("host", ["", "a..b", "x" * 70, ".a", "a\0b"])
def test_a_host_name_that_no_certificate_can_have_is_a_failure(host: str) -> None:
    with pytest.raises(TlsFailure, match="no certificate can have the host name"):
        TlsSession(contexts().client(LISTENER, 0), host)
