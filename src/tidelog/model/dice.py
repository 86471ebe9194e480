"""Randomness as an argument: the host passes a `Dice`, the simulator one that is seeded."""

from typing import Protocol
from uuid import UUID


class Dice(Protocol):
    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""

    def uuid(self) -> UUID:
        """A random (version 4) id, never one of Kafka's reserved ones, whose base64 never begins with '-'."""
