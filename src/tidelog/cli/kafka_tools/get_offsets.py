"""`tidelog get-offsets`: prints offsets of partitions by time, as kafka-get-offsets.sh does."""

import re
from collections.abc import Callable

import click

from tidelog.cli import options
from tidelog.cli.kafka_tools.topics import topic_pattern
from tidelog.client import admin, log_offsets
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import exception_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, TopicPartition
from tidelog.model.user_error import UserError

TIMES = {
    "latest": log_offsets.LATEST,
    "earliest": log_offsets.EARLIEST,
    "max-timestamp": log_offsets.MAX_TIMESTAMP,
    "earliest-local": log_offsets.EARLIEST_LOCAL,
    "latest-tiered": log_offsets.LATEST_TIERED,
    "earliest-pending-upload": log_offsets.EARLIEST_PENDING_UPLOAD,
}
_RULE = re.compile(r"(?P<topic>[^:,]*)(?::(?:(?P<one>\d+)|(?P<first>\d*)-(?P<end>\d*)|))?")

Filter = Callable[[TopicPartition], bool]


@click.command("get-offsets")
@options.bootstrap_server
@click.option("--topic", metavar="REGEX", help="Only these topics.")
@click.option("--partitions", metavar="N,N", help="Only these partitions.")
@click.option(
    "--topic-partitions",
    metavar="T:1,U:0-3,V:5-",
    help="Only these topics and partitions; the end of a range is not included.",
)
@click.option(
    "--time",
    default="latest",
    show_default=True,
    metavar="TIME",
    help=f"A timestamp in ms, or {', '.join(TIMES)}.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave internal topics out.")
@options.command_config("--command-config")
def command(
    bootstrap_server: str,
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    time: str,
    exclude_internal_topics: bool,
) -> None:
    """Print TOPIC:PARTITION:OFFSET for each partition: its end, its start, or a time."""
    if topic_partitions is not None and (topic is not None or partitions is not None):
        raise UserError("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = parse_time(time)
    if topic_partitions is not None:
        is_wanted = parse_rules(topic_partitions)
    else:
        is_wanted = _named(topic or ".*", partitions)
    with Client(bootstrap_server, tell=options.tell) as client:
        chosen = _chosen(client, is_wanted, with_internal=not exclude_internal_topics)
        found = log_offsets.offsets_at(client, chosen, timestamp)
    for where, (error, offset) in sorted(found.items(), key=lambda one: str(one[0])):
        if error is not ErrorCode.none:
            click.echo(
                f"Skip getting offsets for topic-partition {where} due to error: "
                f"{exception_text(error)}",
                err=True,
            )
        elif offset != NO_OFFSET:
            click.echo(f"{where.topic}:{where.partition}:{offset}")


def _chosen(client: Client, is_wanted: Filter, *, with_internal: bool) -> list[TopicPartition]:
    names = [one.name for one in admin.topics(client) if with_internal or not one.is_internal]
    chosen = [
        where
        for topic in (admin.describe_from_metadata(client, names) if names else ())
        for partition in topic.partitions
        if is_wanted(where := TopicPartition(topic.name, partition.number))
    ]
    if not chosen:
        raise UserError("Could not match any topic-partitions with the specified filters")
    return chosen


def parse_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    if text.removeprefix("-").isdecimal():
        return int(text)
    names = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
    raise UserError(
        f"Malformed time argument {text}. Please use {names}, or a specified long format timestamp"
    )


def _named(topic: str, partitions: str | None) -> Filter:
    """The filter of --topic and --partitions."""
    pattern = topic_pattern(topic)
    numbers = (partitions or "").split(",") if partitions else []
    if not all(number.strip().isdecimal() for number in numbers):
        raise UserError(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{partitions}"
        )
    wanted = {int(number) for number in numbers}
    return lambda where: (
        pattern.fullmatch(where.topic) is not None and (not wanted or where.partition in wanted)
    )


def parse_rules(text: str) -> Filter:
    """The filter of --topic-partitions: a partition is wanted if one rule matches it."""
    rules = [_rule(rule) for rule in text.split(",")]
    return lambda where: any(rule(where) for rule in rules)


def _rule(text: str) -> Filter:
    found = _RULE.fullmatch(text)
    if found is None:
        raise UserError(f"Invalid rule specification: {text}")
    pattern = topic_pattern(found["topic"] or ".*")
    first, end = int(found["first"] or 0), int(found["end"]) if found["end"] else None
    if found["one"]:
        first, end = int(found["one"]), int(found["one"]) + 1
    return lambda where: (
        pattern.fullmatch(where.topic) is not None
        and first <= where.partition
        and (end is None or where.partition < end)
    )
