"""Hash codes and partitions equal those of Java and of Kafka's Utils."""

import pytest

from tidelog.coordination.java_strings import hash_code, utf16_length
from tidelog.coordination.partitioning import partition_for


@pytest.mark.parametrize(
    ("group_id", "code", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("test-group", 627841412, 12),
        ("console-consumer-12345", 158455506, 6),
        ("gr\u00fcppe", -1233264812, 12),
        ("\U0001f600-group", -1198440043, 43),
        ("polygenelubricants", -(2**31), 0),
        ("GydZG_", -(2**31), 0),
    ],
)
def test_group_lands_where_kafka_puts_it(group_id: str, code: int, partition: int) -> None:
    assert hash_code(group_id) == code
    assert partition_for(group_id, 50) == partition


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), ("\u00fc", 1), ("\U0001f600", 2), ("\ud83d", 1)]
)
def test_length_counts_utf16_units(text: str, length: int) -> None:
    assert utf16_length(text) == length
