"""The formats in which `consume` prints a record: Kafka's properties, or kcat's format string."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from tidelog.client.fetcher import Fetched

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(r"%(.)|\\(.)|([^%\\]+)", re.DOTALL)
LETTERS = "tpoksTh%"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of Kafka's default formatter. The fields have Kafka's property names."""

    print_timestamp: bool = False
    print_partition: bool = False
    print_offset: bool = False
    print_headers: bool = False
    print_key: bool = False
    print_value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"

    @classmethod
    def of(cls, properties: dict[str, str]) -> "Columns":
        known = {name.replace("_", "."): name for name in cls.__dataclass_fields__}
        values: dict[str, Any] = {}
        for name, value in properties.items():
            if name not in known:
                raise click.UsageError(f"--property: {name} is not one of {', '.join(known)}")
            is_flag = name.startswith("print.")
            values[known[name]] = value.strip().lower() == "true" if is_flag else value.encode()
        return cls(**values)

    def __call__(self, fetched: Fetched) -> bytes:
        return self.key_separator.join(self._columns(fetched)) + self.line_separator

    def _columns(self, fetched: Fetched) -> Iterator[bytes]:
        record = fetched.record
        if self.print_timestamp:
            kind = "LogAppendTime" if fetched.is_append_time else "CreateTime"
            yield f"{kind}:{record.timestamp}".encode()
        if self.print_partition:
            yield f"Partition:{fetched.partition}".encode()
        if self.print_offset:
            yield f"Offset:{record.offset}".encode()
        if self.print_headers:
            pairs = (b"%b:%b" % (h.key.encode(), self._shown(h.value)) for h in record.headers)
            yield self.headers_separator.join(pairs) or b"NO_HEADERS"
        if self.print_key:
            yield self._shown(record.key)
        if self.print_value:
            yield self._shown(record.value)

    def _shown(self, data: bytes | None) -> bytes:
        return self.null_literal if data is None else data


class Format:
    """kcat's format string.

    %t is the topic, %p the partition, %o the offset, %k the key, %s the value, %T the timestamp,
    and %h the headers.
    """

    def __init__(self, text: str, topic: str) -> None:
        self._topic = topic
        self._parts: list[bytes | str] = []
        for letter, escape, plain in _TOKEN.findall(text):
            if letter and letter not in LETTERS:
                raise click.UsageError(f"--format: %{letter} is not one of %{', %'.join(LETTERS)}")
            if letter:
                self._parts.append(letter)
            else:
                self._parts.append(
                    _ESCAPES.get(escape, escape.encode()) if escape else plain.encode()
                )

    def __call__(self, fetched: Fetched) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else self._value(part, fetched) for part in self._parts
        )

    def _value(self, letter: str, fetched: Fetched) -> bytes:
        record = fetched.record
        match letter:
            case "t":
                return self._topic.encode()
            case "p":
                return b"%d" % fetched.partition
            case "o":
                return b"%d" % record.offset
            case "k":
                return record.key or b""
            case "s":
                return record.value or b""
            case "T":
                return b"%d" % record.timestamp
            case "h":
                return b",".join(
                    b"%b=%b" % (h.key.encode(), b"NULL" if h.value is None else h.value)
                    for h in record.headers
                )
            case _:
                return b"%"
