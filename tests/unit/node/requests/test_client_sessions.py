"""A client's connection: answers leave in the order of requests, and too many stop the reading."""

from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.unit.node.bench import Bench

from tidelog.model.outbound import Send, StartReading, StopReading
from tidelog.node.requests.client_sessions import MAX_IN_WORK, RESUME_AT

API_VERSIONS = ask(18, client_software_name="test", client_software_version="1")
WAITING = fetch_from("orders", max_wait_ms=60_000)


def bench() -> Bench:
    made = Bench()
    made.ask(create_topic("orders"))
    return made


def test_an_answer_waits_for_those_before_it() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, WAITING)
    node.send(conn, API_VERSIONS)
    node.send(conn, API_VERSIONS)
    assert not node.sent[conn]

    node.ask(produce_to("orders", batch(b"wake up")))

    assert node.answer(conn, WAITING).topics
    assert node.answer(conn, API_VERSIONS).api_keys
    assert node.answer(conn, API_VERSIONS).api_keys
    assert not node.sent[conn]


def test_a_waiting_answer_holds_up_no_other_connection() -> None:
    node = bench()
    waiting, other = node.connect(), node.connect()
    node.send(waiting, WAITING)

    assert node.ask(API_VERSIONS, other).api_keys
    assert not node.sent[waiting]


def test_a_request_without_an_answer_holds_up_nobody() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, produce_to("orders", batch(b"silent"), acks=0))
    assert node.ask(API_VERSIONS, conn).api_keys


def test_reading_stops_at_the_limit_and_goes_on_when_half_is_done() -> None:
    node = bench()
    conn = node.connect()
    for _ in range(MAX_IN_WORK - 1):
        assert node.send(conn, WAITING) == []
    assert node.send(conn, WAITING) == [StopReading(conn)]
    # Frames that the host had read already are still taken, and said no more of.
    assert node.send(conn, WAITING) == []

    before = len(node.outbound)
    node.ask(produce_to("orders", batch(b"wake up")))

    effects = [one for one in node.outbound[before:] if getattr(one, "conn", None) == conn]
    starts = [place for place, one in enumerate(effects) if isinstance(one, StartReading)]
    assert len(starts) == 1
    assert sum(isinstance(one, Send) for one in effects) == MAX_IN_WORK + 1
    assert sum(isinstance(one, Send) for one in effects[: starts[0]]) == MAX_IN_WORK + 1 - RESUME_AT


def test_a_parked_connection_that_is_lost_is_sent_nothing() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, WAITING)
    node.send(conn, API_VERSIONS)
    node.disconnect(conn)

    node.ask(produce_to("orders", batch(b"wake up")))

    assert not node.sent[conn]
    assert conn not in node.closed


def test_frames_after_the_node_has_closed_are_ignored() -> None:
    node = bench()
    conn = node.connect()
    node.send_frame(conn, b"garbage")
    assert conn in node.closed

    assert node.send(conn, API_VERSIONS) == []
    node.disconnect(conn)
    assert node.send(conn, API_VERSIONS) == []


def test_what_was_asked_before_a_bad_frame_is_not_answered_after_the_close() -> None:
    node = bench()
    conn = node.connect()
    node.send(conn, WAITING)
    node.send_frame(conn, b"garbage")

    node.ask(produce_to("orders", batch(b"wake up")))

    assert not node.sent[conn]
