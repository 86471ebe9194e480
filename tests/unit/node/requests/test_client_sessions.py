"""Answers are sent in request order. If too many requests are unanswered, reading stops."""

from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.unit.node.bench import Bench

from tidelog.model.outbound import Outbound, Send, StartReading, StopReading
from tidelog.node.requests.client_sessions import MAX_IN_WORK, RESUME_AT, ClientSession

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
    emitted: list[Outbound] = []
    session = ClientSession(7, "127.0.0.1:5", "PLAINTEXT", {}, emitted.append)
    waiting = [session.expect() for _ in range(MAX_IN_WORK - 1)]
    assert emitted == []
    waiting.append(session.expect())
    assert emitted == [StopReading(7)]
    # The node still accepts frames that the host has already read.
    waiting.append(session.expect())
    assert emitted == [StopReading(7)]

    for answer in waiting:
        session.fill(answer, [b"answer"])

    sent = [isinstance(one, Send) for one in emitted]
    assert emitted.count(StartReading(7)) == 1
    assert sum(sent) == MAX_IN_WORK + 1
    assert sum(sent[: emitted.index(StartReading(7))]) == MAX_IN_WORK + 1 - RESUME_AT


def test_f63_a_connection_waits_with_two_fetches_at_most() -> None:
    """The limit exists because one append resumes all waiting fetches in one pass of the loop."""
    node = bench()
    conn = node.connect()
    assert node.send(conn, WAITING) == []
    assert node.send(conn, WAITING) == [StopReading(conn)]

    node.outbound.clear()
    node.ask(produce_to("orders", batch(b"wake up")))

    assert StartReading(conn) in node.outbound
    assert len(node.sent[conn]) == 2


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
