"""Joins the chunks of an encoded response, which in these tests are all in memory."""

from collections.abc import Iterable
from typing import Any


def joined(chunks: Iterable[Any]) -> bytes:
    return b"".join(bytes(chunk) for chunk in chunks)
