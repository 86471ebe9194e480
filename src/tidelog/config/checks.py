"""The checks of configuration values, with the error messages of Apache Kafka."""

import re

from tidelog.config.key import (
    BadValue,
    Check,
    ConfigType,
    Value,
    parse_whole_number,
    split_list,
)

_HOST = re.compile(r"[0-9a-zA-Z\-%._:\[\]]+")


def at_least(lowest: int) -> Check:
    def check(name: str, value: Value) -> None:
        if value is None:
            raise BadValue(name, None, "Value must be non-null")
        assert isinstance(value, int | float)
        if value < lowest:
            raise BadValue(name, value, f"Value must be at least {lowest}")

    return check


def unlimited_or_positive(name: str, value: Value) -> None:
    """Check that a retention is at least 1, or -1 for no limit."""
    if isinstance(value, int) and value < 1 and value != -1:
        raise BadValue(name, value, "Value must be unlimited (-1) or at least 1")


def between(lowest: int, highest: int) -> Check:
    floor = at_least(lowest)

    def check(name: str, value: Value) -> None:
        floor(name, value)
        assert isinstance(value, int | float)
        if value > highest:
            raise BadValue(name, value, f"Value must be no more than {highest}")

    return check


def one_of(*allowed: str) -> Check:
    def check(name: str, value: Value) -> None:
        for item in value if isinstance(value, tuple) else (value,):
            if item not in allowed:
                raise BadValue(name, item, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_ignoring_case(*allowed: str) -> Check:
    def check(name: str, value: Value) -> None:
        if str(value).upper() not in allowed:
            choices = ", ".join(allowed)
            raise BadValue(name, value, f"String must be one of (case insensitive): {choices}")

    return check


def level_or(unset: int, lowest: int, highest: int) -> Check:
    """Check a compression level. `unset` is also allowed, and means the codec's default."""

    def check(name: str, value: Value) -> None:
        if value is None:
            raise BadValue(name, None, "Value must be non-null")
        assert isinstance(value, int)
        if value != unset and not lowest <= value <= highest:
            reason = f"Value must be between {lowest} and {highest} or equal to {unset}"
            raise BadValue(name, value, reason)

    return check


def throttled_replicas(name: str, value: Value) -> None:
    """Check a list of `partition:broker` pairs; `*` stands for all replicas."""
    assert isinstance(value, tuple)
    if value in ((), ("*",)):
        return
    for item in value:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            raise BadValue(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


def parse_host_counts(text: str) -> dict[str, int]:
    """Parse `host:number, ...`; raise ValueError if the text has another form."""
    counts: dict[str, int] = {}
    for item in split_list(text):
        host, colon, count = item.rpartition(":")
        if not (colon and _HOST.fullmatch(host.strip())):
            raise ValueError(f"{item!r} is not of the form host:number")
        counts[host.strip().strip("[]")] = parse_whole_number("", ConfigType.INT, count.strip())
    return counts


def host_counts(name: str, value: Value) -> None:
    assert isinstance(value, str)
    try:
        counts = parse_host_counts(value)
    except ValueError:
        raise BadValue(name, value, "Expected a list of host:number") from None
    if any(count < 0 for count in counts.values()):
        raise BadValue(name, value, "Value must be at least 0")


def principals(name: str, value: Value) -> None:
    """Check that a text lists principals, such as `User:admin;User:CN=broker`."""
    for item in filter(None, (part.strip() for part in str(value or "").split(";"))):
        kind, colon, who = item.partition(":")
        if not (kind and colon and who):
            raise BadValue(
                name,
                value,
                f"expected a string in format principalType:principalName but got {item}",
            )
