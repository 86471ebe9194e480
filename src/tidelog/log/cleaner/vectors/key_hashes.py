"""Hashes of 16 bytes for all keys of a chunk at once: SipHash-1-3 with an output of 128 bits.

The key of the hash function is a secret of this process, so that clients cannot construct
collisions. Keys that are long are hashed one by one with BLAKE2. The length of a key decides which
function is used, so equal keys always have equal hashes.
"""

from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
Positions: TypeAlias = NDArray[np.int64]

LONG_BYTES = 256
"""Keys from this length on are hashed one by one."""
PADDING = LONG_BYTES + 8
"""How many bytes must follow the last key in the buffer."""

_MASK = (1 << 64) - 1
_SECRETS = tuple(hash(b"compaction %d" % number) & _MASK for number in range(2))
"""Python's own hash function has a secret seed."""
_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_EIGHT, _TOP = np.uint64(8), np.uint64(56)
_FULL = np.uint64(_MASK)


def key_hashes(data: bytes, start: Positions, size: Positions) -> tuple[Words, Words]:
    """Two words per key. The first word is never 0. `data` must end with the padding."""
    words = size >> 3
    first, second = np.empty(len(start), np.uint64), np.empty(len(start), np.uint64)
    if len(start):
        low, high = int(words.min()), int(words.max())
        kinds = [low] if low == high else np.unique(words).tolist()
        for count in kinds:
            rows = slice(None) if low == high else np.flatnonzero(words == count)
            if 8 * count >= LONG_BYTES:
                found = _one_by_one(data, start[rows], size[rows])
            else:
                found = _siphash(data, start[rows], size[rows], count)
            first[rows], second[rows] = found
        first[first == 0] = 1
    return first, second


def _one_by_one(data: bytes, start: Positions, size: Positions) -> tuple[Words, Words]:
    secret = b"".join(one.to_bytes(8, "little") for one in _SECRETS)
    digests = b"".join(
        blake2b(data[at : at + length], digest_size=16, key=secret).digest()
        for at, length in zip(start.tolist(), size.tolist(), strict=True)
    )
    pairs = np.frombuffer(digests, np.uint64)
    return pairs[::2], pairs[1::2]


def _siphash(data: bytes, start: Positions, size: Positions, whole: int) -> tuple[Words, Words]:
    """The hashes of keys that consist of `whole` words and up to seven more bytes."""
    # A view of the eight bytes at every position.
    words: Words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))
    state = [
        np.full(
            len(start), initial ^ _SECRETS[number % 2] ^ (0xEE if number == 1 else 0), np.uint64
        )
        for number, initial in enumerate(_INITIAL)
    ]
    for number in range(whole):
        _absorb(state, words[start + 8 * number])
    length = size.astype(np.uint64)
    rest = words[start + 8 * whole] & ~(_FULL << ((length & np.uint64(7)) * _EIGHT))
    _absorb(state, rest | (length << _TOP))
    state[2] ^= np.uint64(0xEE)
    first = _squeezed(state)
    state[1] ^= np.uint64(0xDD)
    return first, _squeezed(state)


def _absorb(state: list[Words], word: Words) -> None:
    state[3] ^= word
    _mix(state)
    state[0] ^= word


def _squeezed(state: list[Words]) -> Words:
    for _ in range(3):
        _mix(state)
    result: Words = state[0] ^ state[1]
    result ^= state[2]
    result ^= state[3]
    return result


def _mix(state: list[Words]) -> None:
    """One round of SipHash."""
    a, b, c, d = state
    a += b
    b = _rotated(b, 13)
    b ^= a
    a = _rotated(a, 32)
    c += d
    d = _rotated(d, 16)
    d ^= c
    a += d
    d = _rotated(d, 21)
    d ^= a
    c += b
    b = _rotated(b, 17)
    b ^= c
    state[:] = a, b, _rotated(c, 32), d


def _rotated(word: Words, bits: int) -> Words:
    left = word << np.uint64(bits)
    left |= word >> np.uint64(64 - bits)
    return left
