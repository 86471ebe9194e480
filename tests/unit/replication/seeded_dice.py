"""Random numbers that depend only on the seed."""

import random
from uuid import UUID


class SeededDice:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)
