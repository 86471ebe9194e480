"""The consumer protocol that members of classic groups embed in their metadata and assignments.

A subscription lists topics and, from version 1 on, the partitions that the member owns. An
assignment lists partitions by topic. A version newer than the newest known one is read as that one,
because later versions only add fields.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

NEWEST_VERSION = 3

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class EmbeddedProtocolError(ValueError):
    """The bytes are not a message of the consumer protocol."""


@dataclass(frozen=True, slots=True)
class EmbeddedSubscription:
    version: int
    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedAssignment:
    partitions: tuple[tuple[str, tuple[int, ...]], ...]
    user_data: bytes | None = None


def read_subscription(data: bytes) -> EmbeddedSubscription:
    reader = _Reader(data)
    version = reader.version()
    topics = tuple(reader.string() for _ in range(reader.count()))
    reader.nullable_bytes()
    owned = reader.topic_partitions() if version >= 1 else ()
    if version >= 2:
        reader.int32()  # the generation in which the member owned these partitions
    rack_id = reader.nullable_string() if version >= 3 else None
    return EmbeddedSubscription(version, topics, owned, rack_id)


def read_assignment(data: bytes) -> EmbeddedAssignment:
    reader = _Reader(data)
    reader.version()
    partitions = reader.topic_partitions()
    return EmbeddedAssignment(partitions, reader.nullable_bytes())


def write_assignment(partitions: Iterable[tuple[str, tuple[int, ...]]], version: int) -> bytes:
    """An assignment without user data, in the version of the member's subscription."""
    entries = tuple(partitions)
    out = bytearray(_INT16.pack(version) + _INT32.pack(len(entries)))
    for topic, ids in entries:
        name = topic.encode()
        out += _INT16.pack(len(name)) + name + _INT32.pack(len(ids))
        out += struct.pack(f">{len(ids)}i", *ids)
    out += _INT32.pack(-1)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def version(self) -> int:
        version = self.int16()
        if version < 0:
            raise EmbeddedProtocolError(f"version {version}")
        return min(version, NEWEST_VERSION)

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def count(self) -> int:
        count = self.int32()
        if not 0 <= count <= len(self._data):
            raise EmbeddedProtocolError(f"array of {count}")
        return count

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise EmbeddedProtocolError("a name is null")
        return text

    def nullable_string(self) -> str | None:
        length = self.int16()
        try:
            return None if length < 0 else self._take(length).decode()
        except UnicodeDecodeError as error:
            raise EmbeddedProtocolError(str(error)) from error

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def topic_partitions(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple(
            (self.string(), tuple(self.int32() for _ in range(self.count())))
            for _ in range(self.count())
        )

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise EmbeddedProtocolError(f"{length} bytes at {self._position} of {len(self._data)}")
        taken = self._data[self._position : end]
        self._position = end
        return taken
