"""Records that clients must get back unchanged: extreme values of all fields, every codec."""

from dataclasses import dataclass

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_TIME = 1_700_000_000_000

Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Sample:
    """One record as it was sent, or as it was read."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def sample(
    number: int, key: bytes | None, value: bytes | None, *headers: tuple[str, bytes | None]
) -> Sample:
    return Sample(key, value, headers, BASE_TIME + 1000 * number)


SAMPLES = [
    sample(0, None, b"plain"),
    sample(1, b"key", b"with a key"),
    sample(2, b"tombstone", None),
    sample(3, b"", b""),
    sample(4, None, b""),
    sample(5, b"\x00\xff\xfe", bytes(range(256))),
    sample(6, b"headers", b"v", ("b", b"2"), ("a", b"1"), ("b", b"3"), ("empty", b"")),
    sample(7, b"unicode", "päivää ⏱".encode(), ("ключ", "значение".encode())),
    sample(8, b"long", b"0123456789" * 2000),
    sample(2, b"time goes back", b"v"),
]
NULL_HEADER = sample(9, b"null header", b"v", ("nothing", None), ("after", b"x"))


def numbered(count: int, size: int = 100) -> list[bytes]:
    """Values that each contain their own position."""
    return [f"{number:09}".encode().ljust(size, b".") for number in range(count)]
