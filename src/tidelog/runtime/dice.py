"""Randomness from the operating system, for a node in production."""

import os
from uuid import UUID

RESERVED = frozenset(UUID(int=value) for value in (0, 1))
"""The ids that are never drawn: Kafka's null id and the id of the metadata topic."""

_DASH = 62 << 2
"""An id whose first byte is `_DASH` to `_DASH + 3` begins with '-' in base64."""


class SystemDice:
    """Draws from os.urandom."""

    def below(self, bound: int) -> int:
        assert bound > 0
        # Draw 64 bits more than needed, so that the bias of the modulo stays below one in 2**64.
        size = bound.bit_length() // 8 + 9
        return int.from_bytes(os.urandom(size), "big") % bound

    def uuid(self) -> UUID:
        while True:
            drawn = UUID(bytes=os.urandom(16), version=4)
            if drawn not in RESERVED and drawn.bytes[0] & 0xFC != _DASH:
                return drawn
