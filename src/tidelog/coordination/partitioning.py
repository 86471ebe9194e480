"""The `__consumer_offsets` partition of a group; the partition's leader coordinates the group."""

from tidelog.coordination.java_strings import hash_code

OFFSETS_TOPIC = "__consumer_offsets"

_INT_MIN = -(1 << 31)


def partition_for(group_id: str, count: int) -> int:
    """Kafka's rule: the absolute value of Java's hash code, modulo the number of partitions."""
    code = hash_code(group_id)
    # Java's abs() of the smallest int is negative, so Kafka uses 0 instead.
    return 0 if code == _INT_MIN else abs(code) % count
