"""The ledger file: each record is a separate line, even if the previous line is incomplete."""

import json
from pathlib import Path

from tidelog.client.ledger import Acknowledged, Ledger, checksum
from tidelog.model.ids import NO_OFFSET, TopicPartition

ORDERS = TopicPartition("orders", 1)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_acknowledged_record_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"

    with Ledger(path) as ledger:
        ledger.enter(
            ORDERS,
            [Acknowledged(7, b"\xff", b"a"), Acknowledged(NO_OFFSET, None, None)],
            acked_at=1_700_000_000_000,
        )

    assert lines(path) == [
        {
            "topic": "orders",
            "partition": 1,
            "offset": 7,
            "key": "/w==",
            "checksum": checksum(b"\xff", b"a"),
            "acked_at": 1_700_000_000_000,
        },
        {
            "topic": "orders",
            "partition": 1,
            "offset": None,
            "key": None,
            "checksum": checksum(None, None),
            "acked_at": 1_700_000_000_000,
        },
    ]


def test_a_ledger_is_continued_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"topic":"ord')

    with Ledger(path) as ledger:
        ledger.enter(ORDERS, [Acknowledged(0, None, b"a")])

    torn, whole = path.read_text().splitlines()
    assert torn == '{"topic":"ord'
    assert json.loads(whole)["offset"] == 0


def test_no_two_records_share_a_checksum_by_moving_bytes_from_key_to_value() -> None:
    contents = [(b"ab", b"c"), (b"a", b"bc"), (None, b"abc"), (b"abc", None), (b"", b"abc")]

    assert len({checksum(*content) for content in contents}) == len(contents)
