"""The exception for bytes that are not a valid message; the host closes the connection."""


class MalformedMessage(Exception):
    """The bytes do not decode as the message that they claim to be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooManyEntries(MalformedMessage):
    """The message has more topics and partitions than the caller allows."""


class AnswerTooLong(Exception):
    """A response does not fit into one frame."""
