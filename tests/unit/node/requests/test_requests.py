"""If a client sends a bad request, the node closes at most this client's connection."""

from struct import pack
from unittest.mock import ANY

import pytest
from tests.sim.messages import ask, batch, create_topic, frame_of, produce_to
from tests.unit.node.bench import Bench

from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import REGISTRY
from tidelog.model.errors import ErrorCode
from tidelog.model.outbound import RequestFailed
from tidelog.protocol.messages import messages
from tidelog.protocol.varint import uvarint

API_VERSIONS = ask(18, client_software_name="test", client_software_version="1")

JOIN = (
    pack(">h7s", 7, b"readers")
    + pack(">iih", 10_000, 10_000, 0)
    + pack(">h8s", 8, b"consumer")
    + pack(">ih5si", 1, 5, b"range", 0)
)
"""The body of a JoinGroup of version 2."""


@pytest.fixture(scope="module")
def node() -> Bench:
    made = Bench()
    made.ask(create_topic("orders"))
    return made


def header(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    return messages.request_prefix(api_key, version, correlation_id, "test")[4:]


def check_only_this_one_is_closed(node: Bench, conn: int, reason: str) -> None:
    assert reason in node.closed[conn]
    assert not node.sent[conn]
    assert node.ask(API_VERSIONS).error_code is ErrorCode.none


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\x12\0\0", b"\0\x12\0\0\0\0\0\1"])
def test_a_header_that_is_cut_short(node: Bench, frame: bytes) -> None:
    conn = node.connect()
    node.send_frame(conn, frame)
    check_only_this_one_is_closed(node, conn, "malformed request header")


def test_a_client_id_that_overruns_the_frame(node: Bench) -> None:
    conn = node.connect()
    node.send_frame(conn, pack(">hhih", 18, 0, 1, 30_000) + b"x")
    check_only_this_one_is_closed(node, conn, "malformed request header")


@pytest.mark.parametrize("key", [-1, 999, 32_767, 4, 5, 6, 7])
def test_an_api_that_nobody_knows(node: Bench, key: int) -> None:
    conn = node.connect()
    node.send_frame(conn, header(key, 0) if key in (4, 5, 6, 7) else pack(">hhih", key, 0, 1, -1))
    check_only_this_one_is_closed(node, conn, f"unknown API key {key}")


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_a_version_that_is_not_served(node: Bench, api) -> None:
    listener = "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"
    for version in (api.min_version - 1, api.max_version + 1, -5, 32_767):
        conn = node.connect(listener)
        node.send_frame(conn, pack(">hhih", api.key, version, 7, -1) + b"\0" * 50)
        if api.name == "ApiVersions":
            # ApiVersions is answered with the supported versions, so that the client can retry.
            answer = messages.decode_response(18, 0, node.sent[conn].popleft())
            assert answer.error_code is ErrorCode.unsupported_version
            assert [one.api_key for one in answer.api_keys] == [18]
            assert conn not in node.closed
        else:
            check_only_this_one_is_closed(node, conn, "")


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_an_api_of_the_other_listener_is_unknown(node: Bench, api) -> None:
    for listener, kind in (
        ("PLAINTEXT", ListenerKind.BROKER),
        ("CONTROLLER", ListenerKind.CONTROLLER),
    ):
        if kind not in api.listeners:
            conn = node.connect(listener)
            node.send_frame(conn, header(api.key, api.max_version))
            check_only_this_one_is_closed(node, conn, "unknown API key")


def test_a_body_that_is_cut_short(node: Bench) -> None:
    whole = frame_of(create_topic("never", 3))[4:]
    for size in (len(whole) - 1, len(whole) // 2, 20):
        conn = node.connect()
        node.send_frame(conn, whole[:size])
        check_only_this_one_is_closed(node, conn, "malformed")


def test_a_produce_that_is_cut_short(node: Bench) -> None:
    whole = frame_of(produce_to("orders", batch(b"x")))[4:]
    for size in (len(whole) - 1, len(whole) // 2, 30):
        conn = node.connect()
        node.send_frame(conn, whole[:size])
        check_only_this_one_is_closed(node, conn, "malformed Produce")


def test_acks_0_that_fails_can_only_be_told_by_closing(node: Bench) -> None:
    conn = node.connect()
    node.send(conn, produce_to("nope", batch(b"x"), acks=0))
    check_only_this_one_is_closed(node, conn, "unknown_topic_or_partition")


def test_the_correlation_id_comes_back(node: Bench) -> None:
    conn = node.connect()
    for correlation_id in (0, -1, 2**31 - 1, -(2**31)):
        node.send_frame(conn, frame_of(API_VERSIONS, correlation_id)[4:])
        assert messages.correlation_id_of(node.sent[conn].popleft()) == correlation_id


def test_a_closed_connection_is_told_once(node: Bench) -> None:
    conn = node.connect()
    assert len(node.send_frame(conn, b"")) == 1
    assert node.send_frame(conn, b"") == []


def test_a_client_id_as_long_as_can_be_joins_a_group(node: Bench) -> None:
    """The member id contains the client id, but must not exceed the longest allowed string."""
    name = b"x" * 32_767
    node.ask(ask(10, key_type=0, coordinator_keys=("readers",)))
    conn = node.connect()
    node.send_frame(conn, pack(">hhih", 11, 2, 7, len(name)) + name + JOIN)
    node.pass_time(20_000)
    [answer] = node.sent[conn]
    assert b"x" * 32_730 + b"-" in answer


@pytest.mark.parametrize("length", [11_000, 32_767])
def test_text_that_cannot_be_repeated_is_malformed(node: Bench, length: int) -> None:
    conn = node.connect()
    name = b"\xff" * length
    node.send_frame(conn, pack(">hhih", 11, 2, 7, length) + name + JOIN)
    check_only_this_one_is_closed(node, conn, "malformed request header")


def test_a_compact_string_is_no_longer_than_another(node: Bench) -> None:
    conn = node.connect()
    node.send_frame(conn, header(11, 6) + uvarint(40_001) + b"g" * 40_000)
    node.settle()
    assert "a string of 40000 bytes" in node.closed[conn]


def test_a_request_that_fails_while_it_waits_harms_its_own_client_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Bench()

    def fail(*_: object) -> bytes:
        raise RuntimeError("cannot be told")

    conn = node.connect()
    node.send(conn, create_topic("made"))  # the answer waits for the metadata log
    with monkeypatch.context() as patched:
        patched.setattr("tidelog.node.requests.requests.encode_response_steps", fail)
        with pytest.raises(RuntimeError, match="cannot be told"):
            node.settle()
    assert node.outbound[-1] == RequestFailed(conn, ANY)
    node.send(conn, create_topic("ignored"))
    assert not node.sent[conn]
    assert node.stopped is None
    assert node.ask(API_VERSIONS).error_code is ErrorCode.none
