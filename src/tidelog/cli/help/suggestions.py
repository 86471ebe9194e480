"""Suggests known names that are similar to a mistyped name."""

from collections.abc import Iterable
from difflib import get_close_matches

import click

MOST = 3

KAFKA_TOOLS = {
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer-groups": "groups",
    "consumer-perf-test": "perf",
    "leader-election": "elect",
    "metadata-quorum": "quorum",
    "producer-perf-test": "perf",
    "reassign-partitions": "reassign",
    "server-start": "serve",
    "storage": "format",
}
"""The commands for tools of Kafka that have another name: kafka-storage.sh is `format`."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`. Did you mean 'a' or 'b'?`, or only a full stop if no known name is similar."""
    names = list(known)
    containing = [one for one in names if len(name) > 2 and name in one]
    near = get_close_matches(name, names, MOST)
    meant = [f"'{one}'" for one in dict.fromkeys((*near, *containing))][:MOST]
    if not meant:
        return "."
    *others, last = meant
    return f". Did you mean {', '.join(others)} or {last}?" if others else f". Did you mean {last}?"


def with_suggestion(error: click.UsageError) -> str:
    """The message of a usage error. A wrong command or choice gets suggestions."""
    message = error.format_message()
    wrong = _mistyped(error)
    if wrong is None or "Did you mean" in message:
        return message
    return message.rstrip(".") + did_you_mean(*wrong).rstrip(".")


def _mistyped(error: click.UsageError) -> tuple[str, list[str]] | None:
    """The wrong name and the known names, if the error is about a name."""
    quoted = error.message.split("'")
    context = error.ctx
    if len(quoted) < 3 or context is None:
        return None
    if error.message.startswith("No such command") and isinstance(context.command, click.Group):
        known = context.command.list_commands(context)
        tool = quoted[1].removeprefix("kafka-").removesuffix(".sh")
        meant = KAFKA_TOOLS.get(tool, tool)
        return meant if meant in known else quoted[1], known
    param = getattr(error, "param", None)
    if param is not None and isinstance(param.type, click.Choice):
        return quoted[1], list(param.type.choices)
    return None
