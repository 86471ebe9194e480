"""Text in messages: UTF-8, limited to the length of a Kafka string."""

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage

LONGEST_STRING = 0x7FFF
"""The maximum length of a string in bytes, in the classic and in the compact encoding."""
_MAY_GROW = LONGEST_STRING // 3
"""Text of at most this size fits into `LONGEST_STRING`, even if decoding replaces every byte by a
character of three bytes."""


def read_text(octets: Buffer) -> str:
    """Decode text so that it can be encoded again, because a response may repeat it."""
    if len(octets) > LONGEST_STRING:
        raise MalformedMessage(f"a string of {len(octets)} bytes")
    text = str(octets, "utf-8", "replace")
    if len(octets) > _MAY_GROW and len(text.encode()) > LONGEST_STRING:
        raise MalformedMessage(f"a string of {len(octets)} bytes that is not UTF-8")
    return text


def shortened(text: str, longest: int) -> str:
    """The longest prefix of the text that takes at most this many bytes."""
    return text.encode()[:longest].decode("utf-8", "ignore")
