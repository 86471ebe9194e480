"""Reads the records of committed offsets in their usual form, without the general codec.

A coordinator may hold hundreds of thousands of offsets, and decodes all of them when it is loaded.
A function here returns None for any other form, which the general codec then reads or refuses.
"""

from struct import Struct
from uuid import UUID

from tidelog.model.ids import NO_TIMESTAMP, ZERO_TOPIC_ID, LeaderEpoch, Millis, Offset, TopicId

_OFFSET_AND_EPOCH = Struct(">qi")
_INT64 = Struct(">q")
_NO_TAGS = b"\0"
_ONE_TOPIC_ID = b"\1\0\x10"
"""One tagged field: tag 0 with 16 bytes."""


def fast_offset_key(data: bytes) -> tuple[str, str, int] | None:
    """The group, topic and partition of a key of version 1, or None."""
    size = len(data)
    if size < 10:
        return None
    topic = 4 + (data[2] << 8 | data[3])
    if topic + 2 > size:
        return None
    partition = topic + 2 + (data[topic] << 8 | data[topic + 1])
    if partition + 4 != size:
        return None
    try:
        return (
            data[4:topic].decode(),
            data[topic + 2 : partition].decode(),
            int.from_bytes(data[partition:], "big", signed=True),
        )
    except UnicodeDecodeError:
        return None


def fast_offset_value(
    data: bytes,
) -> tuple[Offset, str, Millis, LeaderEpoch, Millis, TopicId] | None:
    """The fields of a value of version 4, in the order of `OffsetCommitValue`, or None."""
    if data[:2] != b"\0\4" or len(data) < 24 or not 1 <= data[14] < 128:
        return None
    end = 14 + data[14]
    tags = data[end + 8 :]
    if tags == _NO_TAGS:
        topic_id = ZERO_TOPIC_ID
    elif len(tags) == 19 and tags[:3] == _ONE_TOPIC_ID:
        topic_id = UUID(bytes=tags[3:])
    else:
        return None
    offset, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(data, 2)
    try:
        metadata = data[15:end].decode()
    except UnicodeDecodeError:
        return None
    commit_timestamp = _INT64.unpack_from(data, end)[0]
    return offset, metadata, commit_timestamp, leader_epoch, NO_TIMESTAMP, topic_id
