"""The topics that a member of a `consumer` group subscribes to, read from its protocol metadata.

Every version of the consumer protocol starts with the fields of version 0. Only these are read.
"""

import struct

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a subscription; None if the metadata is not a subscription."""
    try:
        return _read_topics(metadata)
    except (struct.error, ValueError):
        return None


def _read_topics(metadata: bytes) -> frozenset[str]:
    version, count = struct.unpack_from(">hi", metadata)
    if version < 0 or count < 0:
        raise ValueError("negative version or count")
    topics = []
    position = 6
    for _ in range(count):
        (length,) = struct.unpack_from(">h", metadata, position)
        position += 2
        topics.append(_slice(metadata, position, length).decode())
        position += length
    (length,) = struct.unpack_from(">i", metadata, position)
    if length >= 0:
        _slice(metadata, position + 4, length)  # the assignor's user data must be complete
    return frozenset(topics)


def _slice(metadata: bytes, position: int, length: int) -> bytes:
    if length < 0 or position + length > len(metadata):
        raise ValueError("length beyond the end")
    return metadata[position : position + length]
