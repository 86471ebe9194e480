"""Field codecs shared by the hand-tuned codecs of Produce and Fetch.

Invariant: every reader checks its bounds. A length that overruns the frame raises MalformedMessage.
A fixed-size field that overruns the frame raises struct.error or IndexError, which the codecs turn
into MalformedMessage.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_EPOCH, NO_NODE, LeaderEpoch, NodeId
from tidelog.protocol.malformed import MalformedMessage, TooManyEntries
from tidelog.protocol.text import read_text
from tidelog.protocol.varint import read_java_int, read_uvarint, uvarint

TopicRef: TypeAlias = str | UUID
"""A topic by name, or by id in the versions that use ids."""

ReadTopic: TypeAlias = Callable[[Buffer, int], tuple[TopicRef, int]]

ANY_NUMBER = 2**31

MAX_TAGGED_FIELDS = 64
"""The maximum number of tagged fields per structure; no Kafka message has more than a few."""

I16 = Struct(">h")
I32 = Struct(">i")
_LEADER = Struct(">ii")


class CurrentLeader(NamedTuple):
    """The current leader, if the receiver of the request is not the leader."""

    leader_id: NodeId = NO_NODE
    leader_epoch: LeaderEpoch = NO_EPOCH


class NodeEndpoint(NamedTuple):
    """The address of a leader named in a response."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None


# -- Reading fields --------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def topic_id(octets: bytes) -> UUID:
    """A cached UUID, because creating one takes longer than reading the rest of an entry."""
    return UUID(bytes=octets)


def read_topic_id(frame: Buffer, position: int) -> tuple[UUID, int]:
    end = position + 16
    if end > len(frame):
        raise MalformedMessage("a topic id is cut short")
    return topic_id(bytes(frame[position:end])), end


def read_string(frame: Buffer, position: int) -> tuple[str, int]:
    text, position = read_nullable_string(frame, position)
    if text is None:
        raise MalformedMessage("a string is null")
    return text, position


def read_nullable_string(frame: Buffer, position: int) -> tuple[str | None, int]:
    length = I16.unpack_from(frame, position)[0]
    return _text(frame, position + 2, length)


def read_compact_string(frame: Buffer, position: int) -> tuple[str, int]:
    end = position + frame[position]
    if position < end < position + 0x80 and end < len(frame):
        # Almost all names are short, so the varint of their length has one byte.
        return str(frame[position + 1 : end], "utf-8", "replace"), end
    text, position = read_nullable_compact_string(frame, position)
    if text is None:
        raise MalformedMessage("a string is null")
    return text, position


def read_nullable_compact_string(frame: Buffer, position: int) -> tuple[str | None, int]:
    if frame[position] == 0:
        return None, position + 1
    length, position = read_uvarint(frame, position)
    return _text(frame, position, length - 1)


def _text(frame: Buffer, position: int, length: int) -> tuple[str | None, int]:
    if length < 0:
        return None, position
    end = position + length
    if end > len(frame):
        raise MalformedMessage(f"a string of {length} bytes")
    return read_text(frame[position:end]), end


def read_count(frame: Buffer, position: int) -> tuple[int, int]:
    """The number of elements of a non-nullable array."""
    count = I32.unpack_from(frame, position)[0]
    if not 0 <= count <= len(frame):
        raise MalformedMessage(f"an array of {count} elements")
    return count, position + 4


def read_compact_count(frame: Buffer, position: int) -> tuple[int, int]:
    count = frame[position]
    if 0 < count < 0x80:
        return count - 1, position + 1
    count, position = read_uvarint(frame, position)
    if not 0 < count <= len(frame):
        raise MalformedMessage(f"an array of {count - 1} elements")
    return count - 1, position


def entries_left(most: int, count: int) -> int:
    """How many topics and partitions may still follow."""
    left = most - count
    if left < 0:
        raise TooManyEntries(f"{-left} array elements over the limit")
    return left


def read_tagged_fields(frame: Buffer, position: int) -> tuple[dict[int, tuple[int, int]], int]:
    """Returns the start and end of each tagged field, and the position after all of them."""
    fields = {}
    count, position = read_java_int(frame, position)
    if count > MAX_TAGGED_FIELDS:
        raise MalformedMessage(f"{count} tagged fields")
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        if position + size > len(frame):
            raise MalformedMessage(f"a tagged field of {size} bytes")
        fields[tag] = (position, position + size)
        position += size
    return fields, position


def skip_tagged_fields(frame: Buffer, position: int) -> int:
    return position + 1 if frame[position] == 0 else read_tagged_fields(frame, position)[1]


def read_current_leader(frame: Buffer, position: int) -> CurrentLeader:
    return CurrentLeader(*_LEADER.unpack_from(frame, position))


def read_node_endpoints(frame: Buffer, position: int) -> tuple[NodeEndpoint, ...]:
    endpoints = []
    count, position = read_compact_count(frame, position)
    for _ in range(count):
        node_id = I32.unpack_from(frame, position)[0]
        host, position = read_compact_string(frame, position + 4)
        port = I32.unpack_from(frame, position)[0]
        rack, position = read_nullable_compact_string(frame, position + 4)
        position = skip_tagged_fields(frame, position)
        endpoints.append(NodeEndpoint(node_id, host, port, rack))
    return tuple(endpoints)


# -- Writing fields --------------------------------------------------------------------------------


def string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()
    return I16.pack(len(encoded)) + encoded


def compact_string(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()
    return uvarint(len(encoded) + 1) + encoded


def topic_by_name(topic: TopicRef) -> bytes:
    assert isinstance(topic, str), "this version names topics"
    return string(topic)


def topic_by_compact_name(topic: TopicRef) -> bytes:
    assert isinstance(topic, str), "this version names topics"
    return compact_string(topic)


def topic_by_id(topic: TopicRef) -> bytes:
    assert isinstance(topic, UUID), "this version identifies topics"
    return topic.bytes


def tagged_fields(fields: Sequence[tuple[int, bytes]]) -> bytes:
    """Encode tag and content of each field. The fields must be in ascending order of tags."""
    encoded = [uvarint(len(fields))]
    for tag, content in fields:
        encoded += (uvarint(tag), uvarint(len(content)), content)
    return b"".join(encoded)


def current_leader(leader: CurrentLeader) -> bytes:
    return _LEADER.pack(*leader) + b"\0"


def node_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    encoded = [uvarint(len(endpoints) + 1)]
    for node_id, host, port, rack in endpoints:
        encoded += (
            I32.pack(node_id),
            compact_string(host),
            I32.pack(port),
            compact_string(rack),
            b"\0",
        )
    return b"".join(encoded)
