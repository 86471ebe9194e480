"""Variable-length integers: seven bits per byte, lowest first; zigzag puts the sign in bit 0.

A read past the end of the buffer raises IndexError, which every decoder converts to its own error.
"""

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage

_INT_SHIFTS = (7, 14, 21, 28)
_LONG_SHIFTS = (7, 14, 21, 28, 35, 42, 49, 56, 63)


def read_uvarint(
    buffer: Buffer, position: int, shifts: tuple[int, ...] = _INT_SHIFTS
) -> tuple[int, int]:
    """Returns the value and the position after it."""
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    for shift in shifts:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedMessage("varint is too long")


def read_java_int(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint as a signed 32-bit integer, as Kafka reads counts and lengths."""
    value, position = read_uvarint(buffer, position)
    return as_java_int(value), position


def as_java_int(value: int) -> int:
    return ((value & 0xFFFF_FFFF) ^ 0x8000_0000) - 0x8000_0000


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    raw, position = read_uvarint(buffer, position)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    raw, position = read_uvarint(buffer, position, _LONG_SHIFTS)
    return (raw >> 1) ^ -(raw & 1), position


SHORT = tuple(bytes((value,)) for value in range(0x80))
"""The encodings of one byte, for encoders that are too busy for a call of `uvarint`."""


def uvarint(value: int) -> bytes:
    assert value >= 0
    if value < 0x80:
        return SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint(value: int) -> bytes:
    """Encode with zigzag, for Kafka's varint and varlong."""
    return uvarint(value << 1 if value >= 0 else (~value << 1) | 1)
