"""Checks of the keys of consumer groups that depend on each other, as in Kafka."""

from collections.abc import Mapping

from tidelog.config.addresses import BadSetting
from tidelog.config.key import Value

_ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def assignor_name(given: str) -> str:
    """The name of an assignor, which may be given by the name of Kafka's class."""
    return _ASSIGNOR_CLASSES.get(given, given)


def check_consumer_groups(values: Mapping[str, Value]) -> None:
    for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
        _check_limits(values, what)
    heartbeat, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if _number(values, heartbeat) >= _number(values, session):
        raise BadSetting(heartbeat, f"it must be less than {session}")
    assignors = values["group.consumer.assignors"]
    assert isinstance(assignors, tuple)
    if not assignors:
        raise BadSetting("group.consumer.assignors", "at least one assignor is needed")
    for name in assignors:
        if assignor_name(name) not in _ASSIGNOR_CLASSES.values():
            raise BadSetting(
                "group.consumer.assignors", f"{name} is not available; uniform and range are"
            )


def _check_limits(values: Mapping[str, Value], what: str) -> None:
    lowest, highest = f"group.consumer.min.{what}", f"group.consumer.max.{what}"
    if _number(values, highest) < _number(values, lowest):
        raise BadSetting(highest, f"it must be greater than or equal to {lowest}")
    value = _number(values, f"group.consumer.{what}")
    if not _number(values, lowest) <= value <= _number(values, highest):
        raise BadSetting(f"group.consumer.{what}", f"it must be between {lowest} and {highest}")


def _number(values: Mapping[str, Value], name: str) -> int:
    number = values[name]
    assert isinstance(number, int)
    return number
