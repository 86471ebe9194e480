"""A seeded `Dice`: the same seed gives the same throws."""

import random
from uuid import UUID


class SeededDice:
    def __init__(self, seed: int | str) -> None:
        self._seed = seed
        self._random = random.Random(str(seed))
        self._bits = self._random.getrandbits

    def fork(self, name: str) -> "SeededDice":
        """Dice of their own for one purpose, so that its throws move nobody else's."""
        return SeededDice(f"{self._seed}/{name}")

    def below(self, bound: int) -> int:
        assert bound > 0
        # What randrange does of Python 3.11, without its checks: this is thrown very often.
        bits = bound.bit_length()
        drawn = self._bits(bits)
        while drawn >= bound:
            drawn = self._bits(bits)
        return drawn

    def uuid(self) -> UUID:
        while True:
            made = UUID(int=self._random.getrandbits(128), version=4)
            # Its base64 must not look like an option of a command line.
            if made.bytes[0] >> 2 != 62:
                return made
