"""Reads the offsets of a batch from Spark's checkpoint."""

from tidelog_pipelines.sources.checkpoint import Span, parse_ends, spans_between


def test_offsets_as_the_connector_writes_them() -> None:
    assert parse_ends('{"t":{"1":7,"0":5}}') == {"t": {1: 7, 0: 5}}


def test_offsets_of_another_source_are_none() -> None:
    assert parse_ends("12") == {}
    assert parse_ends('{"logOffset":3}') == {}
    assert parse_ends("-") == {}


def test_a_batch_covers_what_lies_between_two_offsets() -> None:
    before = {"t": {0: 5, 1: 7}, "quiet": {0: 3}}
    after = {"t": {0: 9, 1: 7, 2: 4}, "quiet": {0: 3}, "new": {0: 2}}
    assert spans_between(before, after) == {
        "new": [Span(0, 0, 2)],
        "t": [Span(0, 5, 9), Span(2, 0, 4)],
    }
