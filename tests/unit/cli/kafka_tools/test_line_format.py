"""`produce` splits lines into records, and `consume` formats records as lines."""

import click
import pytest

from tidelog.cli.kafka_tools.produce import LineFormat
from tidelog.cli.output.record_format import Columns, Format
from tidelog.client.fetcher import Fetched
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Header, Record

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("properties", "line", "record"),
    [
        ({}, "a\tb", Record(None, b"a\tb", NOW)),
        ({"parse.key": "true"}, "a\tb\tc", Record(b"a", b"b\tc", NOW)),
        ({"parse.key": "true", "key.separator": ": "}, "a: b", Record(b"a", b"b", NOW)),
        ({"null.marker": "NIL"}, "NIL", Record(None, None, NOW)),
        (
            {"parse.headers": "true", "parse.key": "true"},
            "h:1,g:\tk\tv",
            Record(b"k", b"v", NOW, (Header("h", b"1"), Header("g", b""))),
        ),
    ],
)
def test_a_line_becomes_a_record(properties: dict[str, str], line: str, record: Record) -> None:
    assert LineFormat.of(properties, None).record(line, NOW) == record


def test_key_separator_alone_turns_keys_on() -> None:
    assert LineFormat.of({}, ":").record("k:v:w", NOW) == Record(b"k", b"v:w", NOW)


def test_bytes_that_are_not_text_pass_unchanged() -> None:
    line = b"\xff\xfe".decode(errors="surrogateescape")
    assert LineFormat().record(line, NOW).value == b"\xff\xfe"


def test_a_line_without_its_separator_is_refused() -> None:
    with pytest.raises(UserError, match="there is no ':' after a key in 'kv'"):
        LineFormat.of({}, ":").record("kv", NOW)


@pytest.mark.parametrize("make", [lambda p: LineFormat.of(p, None), Columns.of])
def test_an_unknown_property_is_refused(make: type) -> None:
    with pytest.raises(click.UsageError, match=r"print\.kee is not one of"):
        make({"print.kee": "true"})


FETCHED = Fetched(2, Record(b"k", b"v", NOW, (Header("h", b"x"), Header("n", None)), 7), False)
EMPTY = Fetched(0, Record(None, None, NOW, (), 8), True)


@pytest.mark.parametrize(
    ("properties", "line", "empty"),
    [
        ({}, b"v\n", b"null\n"),
        ({"print.key": "true"}, b"k\tv\n", b"null\tnull\n"),
        ({"print.value": "false", "print.offset": "TRUE"}, b"Offset:7\n", b"Offset:8\n"),
        ({"print.key": "true", "key.separator": ":", "null.literal": ""}, b"k:v\n", b":\n"),
        ({"print.headers": "true"}, b"h:x,n:null\tv\n", b"NO_HEADERS\tnull\n"),
        (
            {"print.timestamp": "true", "print.partition": "true", "line.separator": ";"},
            b"CreateTime:1700000000000\tPartition:2\tv;",
            b"LogAppendTime:1700000000000\tPartition:0\tnull;",
        ),
    ],
)
def test_columns_are_those_of_kafkas_tool(
    properties: dict[str, str], line: bytes, empty: bytes
) -> None:
    columns = Columns.of(properties)
    assert (columns(FETCHED), columns(EMPTY)) == (line, empty)


def test_a_format_has_kcats_letters() -> None:
    show = Format(r"%t-%p@%o\t%k=%s %T {%h} 100%%\n", "topic")
    assert show(FETCHED) == b"topic-2@7\tk=v 1700000000000 {h=x,n=NULL} 100%\n"
    with pytest.raises(click.UsageError, match="%x is not one of"):
        Format("%x", "topic")
