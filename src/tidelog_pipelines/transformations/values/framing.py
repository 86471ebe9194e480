"""The header that a schema registry's serializers write before each value.

The header is the byte 0 and the id of the schema in four bytes. For Protobuf, the position of the
message in the schema follows. The position is a count and as many indexes, or a single 0 for the
first message.
"""

from collections.abc import Callable

from tidelog_pipelines.transformations.values.strict_json import Refused

HEADER_BYTES = 5
MAGIC = 0
"""The first byte of a value that a schema registry's serializer has written."""
MOST_INDEXES = 100

WriterKey = tuple[int, tuple[int, ...]]
"""The id of a schema, and the position of the Protobuf message in it, (0,) for the first.

The position is () for Avro and for values without a header.
"""
ReadHeader = Callable[[bytes], tuple[WriterKey, int]]


def schema_id(raw: bytes) -> int:
    """The schema id in the header. Raises `Refused` if the value has no header."""
    if len(raw) < HEADER_BYTES:
        raise Refused("the value is shorter than a schema registry's header")
    if raw[0] != MAGIC:
        raise Refused(f"the value begins with byte {raw[0]}, not with a schema registry's 0")
    return int.from_bytes(raw[1:HEADER_BYTES], "big")


def not_examined(id: int) -> Refused:
    """The refusal of a value whose schema id was not in the records when they were examined.

    When a DataFrame reads its source again to decode the records, it may find newer records.
    """
    return Refused(f"schema {id} was not known when the records were examined")


NO_WRITER: WriterKey = (0, ())
"""The key for values without a header. All of them have the same schema."""


def no_header(raw: bytes) -> tuple[WriterKey, int]:
    """NO_WRITER and the length 0, for values without a header."""
    return NO_WRITER, 0


def header(raw: bytes) -> tuple[WriterKey, int]:
    """The key of the writer's schema, and the length of the header."""
    return (schema_id(raw), ()), HEADER_BYTES


def header_with_indexes(raw: bytes) -> tuple[WriterKey, int]:
    """As `header`, for Protobuf. The key contains the position of the message."""
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
    """A zigzag number of at most 32 bits, and the position after it."""
    found = shift = 0
    while at < len(raw) and shift < 35:
        byte = raw[at]
        found, at, shift = found | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise Refused("the header does not have the message indexes of Protobuf")
