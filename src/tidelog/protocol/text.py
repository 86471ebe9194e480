"""Text on the wire: UTF-8, no longer than Kafka lets a string be."""

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage

LONGEST_STRING = 0x7FFF
"""In bytes, with a length of two bytes or as a varint."""
_MAY_GROW = LONGEST_STRING // 3
"""A byte that is no UTF-8 is read as a character that takes three."""


def read_text(octets: Buffer) -> str:
    """What is read can also be written: an answer may have to repeat it."""
    if len(octets) > LONGEST_STRING:
        raise MalformedMessage(f"a string of {len(octets)} bytes")
    text = str(octets, "utf-8", "replace")
    if len(octets) > _MAY_GROW and len(text.encode()) > LONGEST_STRING:
        raise MalformedMessage(f"a string of {len(octets)} bytes that is not UTF-8")
    return text


def shortened(text: str, longest: int) -> str:
    """As many of its first characters as take no more bytes than this."""
    return text.encode()[:longest].decode("utf-8", "ignore")
