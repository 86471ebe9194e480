"""The new offsets of a group for `tidelog groups --reset-offsets`."""

import csv
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from tidelog.cli import options
from tidelog.client import admin
from tidelog.client.administration.group_admin import committed_offsets
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.client.log_offsets import EARLIEST, LATEST, offsets_at
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Offset, TopicPartition

MILLISECONDS = 1000
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:\.\d{0,9})?)S)?)?",
    re.IGNORECASE,
)

Offsets = dict[TopicPartition, Offset]


class GroupCommandFailed(Exception):
    """The command cannot be carried out. As Kafka's tool, the command prints the reason."""


@dataclass(frozen=True, slots=True)
class ResetScenario:
    """Where the offsets are set to. Exactly one field is set."""

    to_offset: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    shift_by: int | None = None
    from_file: str | None = None


def named_partitions(client: Client, topics: Sequence[str]) -> list[TopicPartition]:
    """The partitions that `--topic T` and `--topic T:0,1` name."""
    named = [one for topic in topics if ":" in topic for one in _parse(topic)]
    whole = [topic for topic in topics if ":" not in topic]
    try:
        described = admin.describe_from_metadata(client, whole) if whole else []
    except admin.RequestRefused as refused:
        raise GroupCommandFailed(default_message(refused.error)) from None
    return named + [
        TopicPartition(topic.name, one.number) for topic in described for one in topic.partitions
    ]


def _parse(topic: str) -> list[TopicPartition]:
    name, _, numbers = topic.partition(":")
    if not name or not numbers or ":" in numbers:
        raise click.UsageError(f"Invalid topic arg '{topic}', expected topic name and partitions")
    for number in numbers.split(","):
        if not number.isdecimal():
            raise click.UsageError(f"Invalid partition '{number}' specified in topic arg '{topic}'")
    return [TopicPartition(name, int(number)) for number in numbers.split(",")]


def new_offsets(
    client: Client,
    group: str,
    partitions: Collection[TopicPartition],
    scenario: ResetScenario,
    plans: Mapping[str, Offsets],
) -> Offsets:
    """The offsets to set; `plans` holds the offsets of --from-file by group."""
    _check_partitions(client, partitions)
    if scenario.from_file is not None:
        if group not in plans:
            click.echo(f"\nError: No reset plan for group {group} found.")
            return {}
        _check_partitions(client, plans[group])
        return _within_logs(client, plans[group])
    if scenario.to_offset is not None:
        return _within_logs(client, dict.fromkeys(partitions, scenario.to_offset))
    if scenario.shift_by is not None:
        return _within_logs(client, _shifted(client, group, partitions, scenario.shift_by))
    if scenario.to_datetime is not None:
        return _at(client, partitions, parse_datetime(scenario.to_datetime))
    if scenario.by_duration is not None:
        now = time.time_ns() // 1_000_000
        return _at(client, partitions, now - parse_duration(scenario.by_duration))
    if scenario.to_current:
        committed = committed_offsets(client, group)
        known = {one: committed[one].offset for one in partitions if one in committed}
        return known | _ends(client, [one for one in partitions if one not in known], LATEST)
    return _ends(client, partitions, EARLIEST if scenario.to_earliest else LATEST)


def _check_partitions(client: Client, partitions: Collection[TopicPartition]) -> None:
    topics = tuple(sorted({one.topic for one in partitions}))
    found = client.metadata(topics).topics if topics else ()
    leaders = {
        TopicPartition(topic.name or "", one.partition_index): one.leader_id
        for topic in found
        for one in topic.partitions
    }
    unknown = [str(one) for one in partitions if one not in leaders]
    if unknown:
        raise GroupCommandFailed(f'The partitions "{",".join(unknown)}" do not exist')
    leaderless = [str(one) for one in partitions if leaders[one] < 0]
    if leaderless:
        raise GroupCommandFailed(f'The partitions "{",".join(leaderless)}" have no leader')


def _shifted(
    client: Client, group: str, partitions: Collection[TopicPartition], by: int
) -> Offsets:
    committed = committed_offsets(client, group)
    for one in partitions:
        if one not in committed:
            raise click.UsageError(
                f"Cannot shift offset for partition {one} since there is no current committed "
                "offset"
            )
    return {one: committed[one].offset + by for one in partitions}


def _within_logs(client: Client, wanted: Offsets) -> Offsets:
    """The offsets, moved to the start or the end of the log if they are outside of it."""
    starts = _ends(client, wanted, EARLIEST)
    ends = _ends(client, wanted, LATEST)
    inside = {}
    for where, offset in wanted.items():
        inside[where] = max(starts[where], min(offset, ends[where]))
        if inside[where] != offset:
            side = "lower than earliest" if offset < inside[where] else "higher than latest"
            options.tell(
                f"New offset ({offset}) is {side} offset for topic partition {where}. "
                f"Value will be set to {inside[where]}."
            )
    return inside


def _at(client: Client, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
    """The first offset at or after the timestamp, or the end of the log if there is none."""
    found = _ends(client, partitions, timestamp)
    without = [where for where in partitions if found[where] == NO_OFFSET]
    for where in without:
        click.echo(
            f"\nWarn: Partition {where.partition} from topic {where.topic} is empty. "
            "Falling back to latest known offset."
        )
    return found | _ends(client, without, LATEST)


def _ends(client: Client, partitions: Collection[TopicPartition], timestamp: int) -> Offsets:
    found = offsets_at(client, partitions, timestamp)
    for where, one in found.items():
        if one.error is not ErrorCode.none:
            raise GroupCommandFailed(f"{where}: {default_message(one.error)}")
    return {where: one.offset for where, one in found.items()}


def parse_datetime(text: str) -> int:
    """Milliseconds since the epoch. Without a time zone, the time is UTC."""
    if "T" not in text:
        raise GroupCommandFailed(
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise GroupCommandFailed(f'Unparseable date: "{text}"') from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * MILLISECONDS)


def parse_duration(text: str) -> int:
    """The milliseconds of an ISO 8601 duration such as P1DT2H3M4.5S."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.group("days", "hours", "minutes", "seconds")):
        raise GroupCommandFailed("Text cannot be parsed to a Duration")
    days, hours, minutes = (int(found[part] or 0) for part in ("days", "hours", "minutes"))
    seconds = float(found["seconds"] or 0) + 60 * (minutes + 60 * (hours + 24 * days))
    return round(seconds * MILLISECONDS) * (-1 if found["sign"] == "-" else 1)


def read_plans(path: str, groups: Sequence[str]) -> dict[str, Offsets]:
    """The offsets of a file with lines `topic,partition,offset` or `group,topic,...`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise GroupCommandFailed(f"Unable to read file {path}") from None
    plans: dict[str, Offsets] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        if not row:
            continue
        group = groups[0] if len(row) == 3 and len(groups) == 1 else row[0]
        if len(row) not in (3, 4) or (len(row) == 3 and len(groups) != 1):
            raise GroupCommandFailed(f"{path}, line {number}: a column is missing or too much")
        topic, partition, offset = row[-3:]
        if not partition.isdecimal() or not offset.lstrip("-").isdecimal():
            raise GroupCommandFailed(f"{path}, line {number}: a number is expected")
        plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plans
