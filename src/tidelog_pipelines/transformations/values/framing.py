"""The header that a schema registry's serializers write before each value.

It is the byte 0 and the id of the schema, four bytes. For Protobuf, the position of the message in
the schema follows: a count and as many indexes, or one 0 for the first message.
"""

from collections.abc import Callable

from tidelog_pipelines.transformations.values.strict_json import Refused

HEADER_BYTES = 5
MAGIC = 0
"""The first byte of a value that a schema registry's serializer has written."""
MOST_INDEXES = 100

WriterKey = tuple[int, tuple[int, ...]]
"""The id of a schema, and the position of a message in it; () for its only or first one."""
ReadHeader = Callable[[bytes], tuple[WriterKey, int]]


def schema_id(raw: bytes) -> int:
    """The id in the header; raises `Refused`."""
    if len(raw) < HEADER_BYTES:
        raise Refused("the value is shorter than a schema registry's header")
    if raw[0] != MAGIC:
        raise Refused(f"the value begins with byte {raw[0]}, not with a schema registry's 0")
    return int.from_bytes(raw[1:HEADER_BYTES], "big")


NO_WRITER: WriterKey = (0, ())
"""The key of the only schema of values without a header."""


def no_header(raw: bytes) -> tuple[WriterKey, int]:
    """The same for values without a header."""
    return NO_WRITER, 0


def header(raw: bytes) -> tuple[WriterKey, int]:
    """The key of the writer's schema, and the length of the header."""
    return (schema_id(raw), ()), HEADER_BYTES


def header_with_indexes(raw: bytes) -> tuple[WriterKey, int]:
    """The same for Protobuf."""
    found = schema_id(raw)
    count, at = _number(raw, HEADER_BYTES)
    if not 0 <= count <= MOST_INDEXES:
        raise Refused(f"the header has {count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _number(raw, at)
        indexes.append(index)
    return (found, tuple(indexes) or (0,)), at


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most 32 bits, and where it ends."""
    found = shift = 0
    while at < len(raw) and shift < 35:
        byte = raw[at]
        found, at, shift = found | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise Refused("the header does not have the message indexes of Protobuf")
