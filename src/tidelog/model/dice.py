"""The interface for random values, which a host passes to its node. The simulator uses a seed."""

from typing import Protocol
from uuid import UUID


class Dice(Protocol):
    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""

    def uuid(self) -> UUID:
        """A random (version 4) id.

        Kafka's reserved ids, and ids whose base64 begins with '-', are excluded.
        """
