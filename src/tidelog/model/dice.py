"""The port for random values: a host passes a `Dice` to its node, and the simulator's is seeded."""

from typing import Protocol
from uuid import UUID


class Dice(Protocol):
    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""

    def uuid(self) -> UUID:
        """A random (version 4) id, never a reserved one, whose base64 does not begin with '-'."""
