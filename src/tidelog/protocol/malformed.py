"""The one exception for bytes that are no message: whoever sent them gets a closed connection."""


class MalformedMessage(Exception):
    """The bytes do not decode as the message that they claim to be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooManyEntries(MalformedMessage):
    """More topics and partitions than the caller wants to decode."""


class AnswerTooLong(Exception):
    """A request asks for more than fits into one answer."""
