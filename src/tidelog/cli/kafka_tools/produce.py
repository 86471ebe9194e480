"""`tidelog produce`: writes each line of standard input to a topic."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import click

from tidelog.cli import options
from tidelog.client.client import Client
from tidelog.client.ledger import Ledger
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.model.user_error import UserError
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import Header, Record

READ_BYTES = 256 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024
ACKS = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1}


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How to split a line into headers, key and value. The fields have Kafka's property names."""

    parse_key: bool = False
    key_separator: str = "\t"
    parse_headers: bool = False
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None

    @classmethod
    def of(cls, properties: dict[str, str], key_separator: str | None) -> "LineFormat":
        known = {name.replace("_", "."): name for name in cls.__dataclass_fields__}
        values: dict[str, Any] = {}
        for name, value in properties.items():
            if name not in known:
                raise click.UsageError(f"--property: {name} is not one of {', '.join(known)}")
            is_flag = name.startswith("parse.")
            values[known[name]] = value.lower() == "true" if is_flag else value
        if key_separator is not None:
            values |= {"parse_key": True, "key_separator": key_separator}
        return cls(**values)

    def record(self, line: str, now: int) -> Record:
        headers: tuple[Header, ...] = ()
        key: str | None = None
        rest = line
        if self.parse_headers:
            text, rest = self._split(rest, self.headers_delimiter, "headers")
            headers = tuple(self._headers(text))
        if self.parse_key:
            key, rest = self._split(rest, self.key_separator, "a key")
        return Record(self._bytes(key), self._bytes(rest), now, headers)

    def _split(self, line: str, separator: str, what: str) -> tuple[str, str]:
        before, found, after = line.partition(separator)
        if not found:
            raise UserError(f"there is no {separator!r} after {what} in {line[:80]!r}.")
        return before, after

    def _headers(self, text: str) -> Iterator[Header]:
        for part in text.split(self.headers_separator):
            name, value = self._split(part, self.headers_key_separator, "a header's name")
            yield Header(name, self._bytes(value))

    def _bytes(self, text: str | None) -> bytes | None:
        if text is None or (self.null_marker is not None and text == self.null_marker):
            return None
        return text.encode(errors="surrogateescape")


@click.command("produce")
@click.option(
    "--topic", required=True, metavar="NAME", help="The topic; it is created on first use."
)
@options.bootstrap_server
@click.option("--key-separator", metavar="TEXT", help="The text between key and value.")
@click.option("--partition", type=click.IntRange(min=0), help="Write to this partition only.")
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("--compression-codec", type=click.Choice(CODECS), default="none", show_default=True)
@click.option(
    "--property",
    "--reader-property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="parse.key, key.separator, parse.headers, null.marker, ...: those of Kafka's tool.",
)
@click.option(
    "--ledger",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Append acknowledged records to this file, for `tidelog pipeline audit`.",
)
@options.command_config("--command-config", "--producer.config")
def command(
    topic: str,
    bootstrap_server: str,
    key_separator: str | None,
    partition: int | None,
    acks: str,
    compression_codec: str,
    properties: tuple[str, ...],
    ledger: str | None,
) -> None:
    """Write each line of standard input as one record, until the input ends.

    Lines that can be read at once are sent as one batch, and are acknowledged before more lines are
    read. Retries cause no duplicates.
    """
    given = dict(options.key_value("--property", one, strip=False) for one in properties)
    layout = LineFormat.of(given, key_separator)
    with Client(bootstrap_server, tell=options.tell) as client, _opened(ledger) as book:
        producer = Producer(
            client, topic, acks=ACKS[acks], compression=compression_codec, ledger=book
        )
        read = 0
        for lines in _available_lines(sys.stdin.fileno()):
            records, bad = _parse(layout, lines)
            producer.send(records, partition)
            if bad is not None:
                raise UserError(f"line {read + len(records) + 1}: {bad}")
            read += len(lines)


def _opened(ledger: str | None) -> AbstractContextManager[Ledger | None]:
    return nullcontext() if ledger is None else Ledger(ledger)


def _parse(layout: LineFormat, lines: list[str]) -> tuple[list[Record], UserError | None]:
    """The records before the first invalid line, and the reason why that line is invalid."""
    now = time.time_ns() // 1_000_000
    records = []
    for line in lines:
        try:
            records.append(layout.record(line, now))
        except UserError as bad:
            return records, bad
    return records, None


def _available_lines(fd: int) -> Iterator[list[str]]:
    """Yield the complete lines of each read. The last line of the input may lack its newline."""
    rest = b""
    while chunk := os.read(fd, READ_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise UserError(f"a line is longer than {MAX_LINE_BYTES} bytes.")
        if lines:
            yield [_text(line) for line in lines]
    if rest:
        yield [_text(rest)]


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="surrogateescape")
