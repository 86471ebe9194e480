"""The node's idea of now: what its host last said. Nothing in the node reads a real clock."""

from tidelog.model.ids import Millis


class Clock:
    __slots__ = ("now",)

    def __init__(self, now: Millis) -> None:
        self.now = now
