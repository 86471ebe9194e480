"""Headers, versions and wrong lengths: the broker answers a frame or closes the connection."""

import struct
from typing import Any

from tests.clients.batches import Batch
from tests.clients.parity import case
from tests.clients.schema import varint
from tests.clients.talk import Talk, Topic, fetching


def header(key: int, version: int, client: bytes | None = b"parity", tags: bytes = b"") -> bytes:
    """Build a request header; `tags` is for flexible versions."""
    size = struct.pack(">h", -1 if client is None else len(client))
    return struct.pack(">hhi", key, version, 1) + size + (client or b"") + tags


@case("ApiVersions", highest=0)
def future_api_versions(t: Talk) -> None:
    """If the version is unknown, the broker answers in version 0 and lists its own versions."""
    for version in (5, 99, 32767):
        t.wire.correlation = 1
        t.wire.send_frame(header(18, version, tags=b"\0") + b"\x07future\x041.0\0")
        answer = t.wire.answer("ApiVersions", 0)
        t.note(answer)


@case("ApiVersions", highest=0)
def negative_versions(t: Talk) -> None:
    for key in (18, 3, 0):
        t.send(header(key, -1))


@case("ApiVersions", highest=0)
def unknown_api_keys(t: Talk) -> None:
    for key in (-1, 999, 32767):
        for version in (0, 1):
            t.send(header(key, version))


@case("ApiVersions", highest=0)
def inter_broker_apis_on_the_client_listener(t: Talk) -> None:
    for key in (52, 53, 54, 58, 59, 62, 63):  # from Vote (52) to BrokerHeartbeat (63)
        t.send(header(key, 0, tags=b"\0") + bytes(64))


@case("ApiVersions", highest=0)
def no_header(t: Talk) -> None:
    for size in (0, 1, 3, 7, 8, 9):
        t.send(header(18, 0)[:size])


@case("ApiVersions", highest=0)
def client_ids(t: Talk) -> None:
    for client in (None, b"", b"\xff\xfe", b"x" * 32767):
        t.send(header(18, 0, client))
    t.send(struct.pack(">hhih", 18, 0, 1, 99) + b"short")
    t.send(struct.pack(">hhih", 18, 0, 1, -2))


@case("Metadata", lowest=9)
def unknown_tags_are_ignored(t: Talk) -> None:
    tag = b"\x01" + varint(77) + b"\x03abc"
    body = t.schemas.request("Metadata").encode({"topics": []}, t.version)
    t.send(header(3, t.version, tags=tag) + body)
    t.send(header(3, t.version, tags=b"\0") + body[:-1] + tag)


@case("Metadata", lowest=9)
def tags_that_lie(t: Talk) -> None:
    body = t.schemas.request("Metadata").encode({"topics": []}, t.version)
    for tag in (
        b"\x01" + varint(77) + b"\x7fabc",  # longer than the frame
        b"\x01" + varint(77) + b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f",  # two billion tags
        b"\xff\xff\xff\xff\xff\xff",  # a varint without an end
        b"\x02" + varint(5) + b"\x01x" + varint(5) + b"\x01y",  # a tag that occurs twice
        b"\x02" + varint(6) + b"\x01x" + varint(5) + b"\x01y",  # tags out of order
    ):
        t.send(header(3, t.version, tags=tag) + body)
        t.send(header(3, t.version, tags=b"\0") + body[:-1] + tag)


@case("Metadata")
def trailing_bytes(t: Talk) -> None:
    body = t.schemas.request("Metadata").encode({"topics": []}, t.version)
    t.send(header(3, t.version, tags=b"\0" if t.version >= 9 else b"") + body + b"\0\0\0")


@case("Metadata")
def truncated(t: Talk) -> None:
    body = t.schemas.request("Metadata").encode({"topics": [{"name": "abc"}]}, t.version)
    head = header(3, t.version, tags=b"\0" if t.version >= 9 else b"")
    for size in range(len(body)):
        t.send(head + body[:size])


@case("Metadata")
def array_lengths_that_lie(t: Talk) -> None:
    head = header(3, t.version, tags=b"\0" if t.version >= 9 else b"")
    flags = bytes(8)
    if t.version >= 9:
        counts = [varint(2**31), varint(2**32 - 1), varint(100), b"\xff" * 9]
    else:
        counts = [struct.pack(">i", n) for n in (2**31 - 1, 100, -2, -(2**31))]
    for count in counts:
        t.send(head + count + flags)


@case("Metadata")
def string_lengths_that_lie(t: Talk) -> None:
    head = header(3, t.version, tags=b"\0" if t.version >= 9 else b"")
    one = varint(2) if t.version >= 9 else struct.pack(">i", 1)
    topic_id = bytes(16) if t.version >= 10 else b""
    if t.version >= 9:
        sizes = [varint(2**31), varint(200)]
    else:
        sizes = [struct.pack(">h", n) for n in (32767, 200, -2, -32768)]
    for size in sizes:
        t.send(head + one + topic_id + size + b"abc\0\0\0\0")


@case("Metadata")
def bad_utf8(t: Talk) -> None:
    t.ask({"topics": [{"name": "a\udcff\udcfe"}], "allowAutoTopicCreation": False},
          only=lambda answer: [found["errorCode"] for found in answer["topics"]])  # fmt: skip


@case("Metadata", highest=8)
def null_name(t: Talk) -> None:
    t.send(t.wire.frame("Metadata", t.version, {"topics": [{"name": None}]}))


@case("Metadata", highest=0)
def null_topics_in_version_0(t: Talk) -> None:
    t.send(t.wire.frame("Metadata", 0, {"topics": None}))


@case("Produce")
def records_length_lies(t: Talk) -> None:
    """The frame is too short for the length of the records that it announces."""
    topic = t.topic()
    frame = t.wire.frame("Produce", t.version, _produce(topic, Batch().encode()))
    for missing in (1, 20, 80):
        t.send(frame[:-missing])


@case("Produce")
def null_topic_data(t: Talk) -> None:
    t.send(t.wire.frame("Produce", t.version, {"acks": 1, "topicData": None}))


def _produce(topic: Topic, records: bytes) -> dict[str, Any]:
    partition = {"index": 0, "records": records}
    return {
        "acks": 1,
        "timeoutMs": 1000,
        "topicData": [{"name": topic.name, "topicId": topic.id, "partitionData": [partition]}],
    }


@case("Fetch")
def truncated_fetch(t: Talk) -> None:
    topic = t.topic()
    frame = t.wire.frame(
        "Fetch", t.version, fetching([(topic, [{"partition": 0, "fetchOffset": 0}])])
    )
    for size in range(len(frame) - 40, len(frame), 7):
        t.send(frame[:size])


@case("Fetch")
def null_topics(t: Talk) -> None:
    t.send(t.wire.frame("Fetch", t.version, fetching([]) | {"topics": None}))


@case("ApiVersions", highest=0)
def versions_below_and_above_what_is_spoken(t: Talk) -> None:
    """Each client API gets a request in a version that is too old, and one that is too new."""
    spoken = t.quietly("ApiVersions", 0, {})["apiKeys"]
    for api in sorted(spoken, key=lambda api: api["apiKey"]):
        if api["apiKey"] not in CLIENT_APIS or api["apiKey"] == 18:
            continue
        name = t.schemas.apis[api["apiKey"]]
        schema = t.schemas.request(name)
        for version in (schema.versions.low - 1, 100):
            t.wire.send_frame(header(api["apiKey"], version) + bytes(64))
            answer = t.wire.receive_frame()
            t.note(
                [
                    name,
                    "too old" if version < 50 else "too new",
                    "closed" if answer is None else "answered",
                ]
            )
            t.hang_up()


CLIENT_APIS = frozenset(
    (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22, 23, 32, 33, 35, 37, 44, 60, 75)
)
"""The APIs that ordinary clients need."""


@case("Metadata", highest=0)
def answers_in_the_order_asked(t: Talk) -> None:
    """Pipelined requests on one connection are answered in order, even if the first is slow."""
    topic = t.topic()
    slow = fetching([(topic, [{"partition": 0, "fetchOffset": 0}])], minBytes=1, maxWaitMs=300)
    frames = [t.wire.frame("Fetch", 11, slow)]
    frames += [t.wire.frame("Metadata", 1, {"topics": []}) for _ in range(3)]
    first = t.wire.correlation - 3
    t.wire.socket.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
    for _ in frames:
        answer = t.wire.receive_frame()
        assert answer is not None
        t.note(struct.unpack_from(">i", answer)[0] - first)
