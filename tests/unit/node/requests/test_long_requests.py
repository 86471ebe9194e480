"""No request of any API blocks the node for longer than a slice (F63).

The tests count work in function calls, so that the limit is the same on every machine. 65,000
calls take less than 10 milliseconds. Without slices, a long request would need far more calls in
one event.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from tests.hostile_messages import Shape, long_request
from tests.sim.messages import create_topic, produce_to
from tests.unit.api.support import ask
from tests.unit.node.bench import Bench
from tests.unit.node.metered_bench import MeteredBench

from tidelog.api.limits import NAMES
from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import REGISTRY, Api
from tidelog.model.errors import ErrorCode
from tidelog.model.events import FrameReceived, ResponsesUnread
from tidelog.model.outbound import RequestFailed, Send, StartReading, StopReading
from tidelog.node.requests import requests
from tidelog.protocol.fetch.request import FetchPartition, FetchRequest
from tidelog.protocol.messages.canonical import canonical_request, canonical_response
from tidelog.protocol.messages.schema import fields_of
from tidelog.protocol.records.records import Record, build_batch

MOST_CALLS = 65_000
ELEMENTS = 2_500
TOPICS, PARTITIONS = 4, 50
MANY_PARTITIONS = 3_000
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def node_with_topics() -> MeteredBench:
    node = MeteredBench()
    topics = tuple(
        CreatableTopic(
            name=f"t{number}",
            num_partitions=PARTITIONS,
            replication_factor=1,
            assignments=(),
            configs=(),
        )
        for number in range(TOPICS)
    )
    created = node.ask(ask(19, topics=topics, timeout=timedelta(seconds=1)))
    assert {topic.error_code for topic in created.topics} == {ErrorCode.none}
    node.settle()
    return node


def cases(api: Api) -> Iterator[tuple[int, Shape]]:
    yield from ((api.max_version, shape) for shape in Shape)
    if api.min_version < api.max_version:
        yield api.min_version, Shape.WIDE


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_f63_no_api_holds_the_node_for_longer_than_a_slice(api: Api) -> None:
    node = node_with_topics()
    node.is_metered = True
    listener = "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"
    for version, shape in cases(api):
        request = long_request(api, version, shape, ELEMENTS)
        node.most_calls = 0
        conn = node.connect(listener)

        node.send_frame(conn, request.frame[4:])
        for _ in range(2_000):
            if node.sent[conn] or conn in node.closed or node.stopped:
                break
            node.flush()
            node.pass_time(1)

        assert node.most_calls < MOST_CALLS, request.name
        assert node.stopped is None
        assert node.sent[conn] or conn in node.closed, f"no answer to {request.name}"
        node.outbound.clear()


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_the_parts_of_a_request_are_those_of_its_schema(api: Api) -> None:
    if api.parts is not None:
        for cls, path in (
            (canonical_request(api.key), api.parts.asked),
            (canonical_response(api.key), api.parts.answered),
        ):
            for name in path:
                (field,) = [field for field in fields_of(cls) if field.name == name]
                assert field.is_array
                cls = field.entity or cls


def find(*keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=keys)


def test_f63_others_are_served_while_a_long_request_is_worked_on() -> None:
    node = Bench()
    long, other = node.connect(), node.connect()
    node.send(long, find(*(f"group-{number}" for number in range(10_000))))

    node.pass_time(3)
    node.send(other, BEAT)

    assert not node.sent[long]
    assert node.answer(other, BEAT).error_code is ErrorCode.not_coordinator
    node.settle()
    assert len(node.answer(long, find()).coordinators) == 10_000


def test_f96_no_long_request_begins_while_much_is_unread() -> None:
    node = Bench()
    begun, waiting, other = node.connect(), node.connect(), node.connect()
    node.ask(find("group"))  # creates the topic of the offsets
    request = find(*(f"group-{number}" for number in range(5_000)))
    node.send(begun, request)
    node.pass_time(3)
    node.tell(ResponsesUnread(is_much=True))
    node.send(waiting, request)
    node.pass_time(1_000)
    assert node.sent[begun]
    assert not node.sent[waiting]
    node.send(other, BEAT)
    assert node.sent[other]

    node.tell(ResponsesUnread(is_much=False))
    node.pass_time(1_000)

    assert node.sent[waiting]


def test_f63_a_connection_is_not_read_while_its_long_request_is_worked_on() -> None:
    node = Bench()
    conn = node.connect()
    request = find(*(f"group-{number}" for number in range(5_000)))

    began = node.send(conn, request)
    node.outbound.clear()
    node.settle()

    assert StopReading(conn) in began
    assert [type(one) for one in node.outbound if one in (StartReading(conn),)] == [StartReading]
    assert any(isinstance(one, Send) and one.conn == conn for one in node.outbound)


def test_f63_more_elements_than_the_limit_close_the_connection_with_one_sentence() -> None:
    node = Bench()
    conn = node.connect()
    topic = MetadataRequestTopic(name="t", topic_id=None)

    node.send(conn, ask(3, topics=(topic,) * (NAMES.elements + 1)))
    node.settle()

    assert node.closed[conn].endswith(
        f"{NAMES.elements + 1} array elements, over the limit of {NAMES.elements}"
    )
    assert "Metadata" in node.closed[conn]


def test_f63_a_frame_over_the_limit_of_its_api_is_not_even_decoded() -> None:
    node = Bench()
    conn = node.connect()
    header = b"\0\x0c\0\4\0\0\0\7\0\2me\0"

    node.send_frame(conn, header + bytes(300_000))

    assert "Heartbeat (client id 'me'): 300013 bytes, over the limit" in node.closed[conn]


def test_f63_long_requests_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "QUEUED_BYTES", 80_000)
    node = Bench()
    request = find(*(f"group-{number}" for number in range(3_000)))
    conns = [node.connect() for _ in range(5)]

    for conn in conns:
        node.send(conn, request)
    node.settle()

    assert [conn for conn in conns if conn in node.closed] == conns[2:]
    assert all(node.sent[conn] for conn in conns[:2])


def test_f63_fetches_of_many_partitions_that_wait_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "QUEUED_BYTES", 80_000)
    node = Bench()
    api = REGISTRY[1]
    frame = long_request(api, 4, Shape.WIDE, 2_500).frame[4:]
    assert 30_000 < len(frame) < 40_000
    conns = [node.connect() for _ in range(5)]

    for conn in conns:
        node.send_frame(conn, frame)
    node.settle()

    assert [conn for conn in conns if conn in node.closed] == conns[2:]
    assert all(node.sent[conn] for conn in conns[:2])
    node.send_frame(conns[0], frame)
    assert conns[0] not in node.closed


def test_f63_a_fetch_of_too_many_partitions_is_refused_with_their_number() -> None:
    node = Bench()
    conn = node.connect()
    api = REGISTRY[1]
    most = api.limit.elements
    api = replace(api, limit=api.limit._replace(elements=2 * most))
    frame = long_request(api, 4, Shape.WIDE, 3 * most // 2).frame[4:]
    node.tell(FrameReceived(conn, memoryview(bytearray(frame))))
    node.settle()

    assert node.closed[conn].endswith(f"more than {most} topics and partitions")


def test_f63_answers_keep_their_order_when_one_of_them_is_long() -> None:
    node = Bench()
    conn = node.connect()

    node.send(conn, find(*(f"group-{number}" for number in range(3_000))))
    node.send(conn, BEAT)
    node.settle()

    assert len(node.answer(conn, find()).coordinators) == 3_000
    assert node.answer(conn, BEAT).error_code is ErrorCode.not_coordinator


def test_f63_a_client_that_leaves_is_not_worked_for() -> None:
    node = Bench()
    conn = node.connect()
    node.send(conn, find(*(f"group-{number}" for number in range(20_000))))

    node.pass_time(2)
    node.disconnect(conn)
    node.outbound.clear()
    node.settle()

    assert not any(isinstance(one, Send) and one.conn == conn for one in node.outbound)


def test_f63_what_nodes_ask_of_a_controller_does_not_wait_behind_clients() -> None:
    node = Bench()
    clients = [node.connect() for _ in range(5)]
    for conn in clients:
        node.send(conn, find(*(f"group-{number}" for number in range(10_000))))
    conn = node.connect("CONTROLLER")
    api = REGISTRY[56]
    request = long_request(api, api.max_version, Shape.WIDE, 1_000)

    node.send_frame(conn, request.frame[4:])
    for _ in range(2_000):
        if node.sent[conn]:
            break
        node.flush()
        node.pass_time(1)

    assert node.sent[conn]
    assert not node.sent[clients[-1]]


def most_calls_of(node: MeteredBench, request: object) -> int:
    """The most function calls that one event makes until the request is answered or refused."""
    node.is_metered, node.most_calls = True, 0
    conn = node.connect()
    node.send(conn, request)
    for _ in range(5_000):
        if node.sent[conn] or conn in node.closed:
            return node.most_calls
        node.flush()
        node.pass_time(1)
    raise AssertionError("no answer")


@pytest.mark.parametrize("kind", [(2, "t0"), (4, "1")])
@pytest.mark.parametrize("keys", [("nope",), None])
def test_f63_keys_that_are_looked_at_count_as_work_whether_asked_for_or_not(
    kind: tuple[int, str], keys: tuple[str, ...] | None
) -> None:
    node = node_with_topics()
    resource_type, name = kind
    resources = tuple(
        DescribeConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configuration_keys=None if keys is None else (*keys, f"k{number}"),
        )
        for number in range(1_000)
    )
    request = ask(32, resources=resources, include_synonyms=True, include_documentation=True)
    assert most_calls_of(node, request) < MOST_CALLS


@pytest.mark.parametrize("times", [1, 50, 200])
def test_f63_many_producers_of_a_partition_are_told_in_slices(times: int) -> None:
    node = node_with_topics()
    for producer in range(600):
        records = [Record(b"k", b"v", node.now)]
        batch = build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=0)
        node.ask(produce_to("t0", batch))
    topic = TopicRequest(name="t0", partition_indexes=(0,) * times)
    assert most_calls_of(node, ask(61, topics=(topic,))) < MOST_CALLS
    assert (times == 200) == any("100000 producers" in reason for reason in node.closed.values())


def test_a_request_that_is_worked_on_in_slices_is_named_while_it_is() -> None:
    node = Bench()
    conn = node.connect()
    named = set()
    node.send(conn, find(*(f"group-{number}" for number in range(5_000))))
    for _ in range(2_000):
        if node.sent[conn]:
            break
        node.flush()
        node.pass_time(1)
        named.add(node.node.in_work())
    version = REGISTRY[10].max_version
    assert named - {""} == {
        f"a part of FindCoordinator v{version}, client id 'test', from 10.0.0.1"
    }

    node.pass_time(1)
    node.send(conn, BEAT)
    assert node.node.in_work() == ""


def test_f63_the_next_request_waits_until_a_long_answer_is_written() -> None:
    node = Bench()
    conn = node.connect()
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    node.outbound.clear()

    node.send(conn, ask(32, resources=(resource,) * 30))
    node.settle()

    order = [
        type(one)
        for one in node.outbound
        if isinstance(one, StopReading | StartReading | Send) and one.conn == conn
    ]
    assert order == [StopReading, Send, StartReading]


def test_f63_a_connection_waits_with_one_large_fetch_at_a_time() -> None:
    node = node_with_topics()
    conn = node.connect()
    name, body = b"t0", struct.pack(">iiiib", -1, 500, 1, 1_000, 0)
    body += struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", 300)
    body += b"".join(struct.pack(">iqi", index % PARTITIONS, 0, 1_000) for index in range(300))
    frame = struct.pack(">hhih", 1, 4, 7, -1) + body
    assert len(frame) > requests.SHORT_BYTES
    node.outbound.clear()

    node.send_frame(conn, frame)
    assert StopReading(conn) in node.outbound
    assert not node.sent[conn]
    node.pass_time(1_000)
    assert node.sent[conn]
    assert StartReading(conn) in node.outbound


def test_f63_a_request_for_an_endless_answer_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "ANSWER_BYTES", 100_000)
    node = Bench()
    conn = node.connect()
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)

    node.send(conn, ask(32, resources=(resource,) * 30, include_synonyms=True))
    node.settle()

    assert not node.sent[conn]
    assert node.closed[conn] == "sent DescribeConfigs for an answer of more than 100000 bytes"
    assert not any(isinstance(one, RequestFailed) for one in node.outbound)


def test_f63_a_session_in_which_all_partitions_have_changed_is_read_in_slices() -> None:
    """A new isolation level makes all partitions count as changed, even without new records."""
    node = MeteredBench()
    node.ask(create_topic("many", MANY_PARTITIONS))
    for _ in range(30):
        node.settle()
    conn = node.connect()
    asked = [FetchPartition(index, -1, 0, -1, -1, 1_000) for index in range(MANY_PARTITIONS)]
    first = FetchRequest(0, 1, 1 << 20, session_epoch=0, topics=[("many", asked)])
    node.send(conn, first, 12)
    node.settle()
    session = node.answer(conn, first, 12).session_id
    node.is_metered = True

    again = FetchRequest(0, 1, 1 << 20, session_id=session, session_epoch=1, isolation_level=1)
    node.send(conn, again, 12)
    node.settle()

    assert node.answer(conn, again, 12).topics == []
    assert node.most_calls < MOST_CALLS
