"""The iteration order of Java's hash tables.

Kafka's uniform assignor visits members, topics and partitions in this order. The result is an
equally good assignment in any order, but only this order gives the result that Kafka gives.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidelog.coordination.java_strings import hash_code
from tidelog.model.ids import TopicId

T = TypeVar("T")

_SMALLEST_TABLE = 16


def member_order(member_ids: Iterable[str]) -> list[str]:
    keys = list(member_ids)
    return _in_order(keys, hash_code, _grown(len(keys)))


def subscription_order(topic_ids: Iterable[TopicId]) -> list[TopicId]:
    """The order of a set of topics."""
    keys = list(topic_ids)
    return _in_order(keys, _uuid_hash, _sized(len(keys)))


def assignment_order(topic_ids: Iterable[TopicId]) -> list[TopicId]:
    """The order of the topics in an assignment."""
    keys = list(topic_ids)
    return _in_order(keys, _uuid_hash, _grown(len(keys)))


def partition_order(partitions: Iterable[int]) -> list[int]:
    keys = list(partitions)
    return _in_order(keys, int, _sized(len(keys)))


def _grown(count: int) -> int:
    """The slots of a table after adding this many keys one by one."""
    slots = _SMALLEST_TABLE
    while count * 4 > slots * 3:
        slots *= 2
    return slots


def _sized(count: int) -> int:
    """The slots of a table made for this many keys."""
    slots = _SMALLEST_TABLE
    while slots < count * 4 // 3 + 1:
        slots *= 2
    return slots


def _in_order(keys: list[T], hash_of: Callable[[T], int], slots: int) -> list[T]:
    def slot(key: T) -> int:
        code = hash_of(key) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & (slots - 1)

    return sorted(keys, key=slot)


def _uuid_hash(topic_id: TopicId) -> int:
    folded = (topic_id.int >> 64) ^ (topic_id.int & 0xFFFFFFFFFFFFFFFF)
    return ((folded >> 32) ^ folded) & 0xFFFFFFFF
