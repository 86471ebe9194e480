"""Which partition of `__consumer_offsets` holds a group, hence which broker coordinates it."""

from tidelog.coordination.java_strings import hash_code

OFFSETS_TOPIC = "__consumer_offsets"

_INT_MIN = -(1 << 31)


def partition_for(group_id: str, count: int) -> int:
    """Kafka's rule: the absolute value of Java's hash code, modulo the count of partitions."""
    code = hash_code(group_id)
    # Java's abs() of the least int is itself, so Kafka calls it 0.
    return 0 if code == _INT_MIN else abs(code) % count
