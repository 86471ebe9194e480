"""A seeded `Dice`: the same seed produces the same numbers."""

import random
from uuid import UUID


class SeededDice:
    def __init__(self, seed: int | str) -> None:
        self._seed = seed
        self._random = random.Random(str(seed))
        self._bits = self._random.getrandbits

    def fork(self, name: str) -> "SeededDice":
        """New dice for one purpose. Draws from these and from other dice are independent."""
        return SeededDice(f"{self._seed}/{name}")

    def below(self, bound: int) -> int:
        assert bound > 0
        # This is `randrange` of Python 3.11 without its checks, which are slow.
        bits = bound.bit_length()
        drawn = self._bits(bits)
        while drawn >= bound:
            drawn = self._bits(bits)
        return drawn

    def uuid(self) -> UUID:
        while True:
            made = UUID(int=self._random.getrandbits(128), version=4)
            # If the base64 form started with a dash, a command line would read it as an option.
            if made.bytes[0] >> 2 != 62:
                return made
