"""`tidelog topics`: manages topics, with the flags and the output of kafka-topics.sh."""

import re
from base64 import urlsafe_b64decode
from binascii import Error as BadBase64
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import click

from tidelog.cli import options
from tidelog.cli.output.topic_report import Filter, report
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_TOPIC_ID, NodeId
from tidelog.model.user_error import UserError

ACTIONS = ("create", "list", "describe", "alter", "delete")
CHANGES, READS = ("create", "alter"), ("list", "describe")
ONLY_WITH = {
    "partitions": CHANGES,
    "replication_factor": ("create",),
    "replica_assignment": CHANGES,
    "config": ("create",),
    "if_not_exists": ("create",),
    "if_exists": ("alter", "delete", "describe"),
    "exclude_internal": READS,
    "topic_id": ("describe",),
    "under_replicated_partitions": ("describe",),
    "at_min_isr_partitions": ("describe",),
    "under_min_isr_partitions": ("describe",),
    "unavailable_partitions": ("describe",),
    "topics_with_overrides": ("describe",),
}
"""The actions for which each option is valid. As in Kafka's tool, other uses are refused."""

MAX_REPLICATION_FACTOR = 32767
MAX_PARTITIONS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line, as click parses them."""

    topic: str | None
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    config: tuple[str, ...]
    if_not_exists: bool
    if_exists: bool
    exclude_internal: bool
    under_replicated_partitions: bool
    at_min_isr_partitions: bool
    under_min_isr_partitions: bool
    unavailable_partitions: bool
    topics_with_overrides: bool
    partition_size_limit_per_response: int


@click.command("topics")
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--list", is_flag=True, help="List topics.")
@click.option("--describe", is_flag=True, help="Show topics, their partitions and replicas.")
@click.option("--alter", is_flag=True, help="Raise the number of partitions.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="The topic; a regular expression but for --create.")
@click.option("--topic-id", metavar="ID", help="Describe the topic with this id.")
@click.option("--partitions", type=click.IntRange(1, MAX_PARTITIONS), help="Number of partitions.")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, MAX_REPLICATION_FACTOR),
    help="Replicas of each partition.",
)
@click.option(
    "--replica-assignment",
    metavar="1:2,2:3,...",
    help="The brokers of each partition, the preferred leader first.",
)
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A topic configuration.")
@click.option("--if-not-exists", is_flag=True, help="Create only a topic that does not exist.")
@click.option("--if-exists", is_flag=True, help="Do nothing when the topic does not exist.")
@click.option("--exclude-internal", is_flag=True, help="Leave internal topics out.")
@click.option(
    "--under-replicated-partitions", is_flag=True, help="Only: ISR smaller than replicas."
)
@click.option("--at-min-isr-partitions", is_flag=True, help="Only: ISR at min.insync.replicas.")
@click.option("--under-min-isr-partitions", is_flag=True, help="Only: ISR below it.")
@click.option("--unavailable-partitions", is_flag=True, help="Only: without a leader.")
@click.option("--topics-with-overrides", is_flag=True, help="Only: topics with their own configs.")
@click.option("--partition-size-limit-per-response", default=2000, hidden=True)
@options.command_config("--command-config")
def command(bootstrap_server: str, **given: Any) -> None:
    """Create, list, describe, alter and delete topics, with the flags of kafka-topics.sh."""
    actions = [action for action in ACTIONS if given.pop(action)]
    if len(actions) != 1:
        raise click.UsageError(
            "exactly one of --create, --list, --describe, --alter and --delete is needed"
        )
    (action,) = actions
    options.refuse_misplaced(action, given, ONLY_WITH)
    wanted = Options(**given)
    run = {"create": create, "list": list_, "describe": describe, "alter": alter, "delete": delete}
    with Client(bootstrap_server, tell=options.tell) as client:
        run[action](client, wanted)


def create(client: Client, wanted: Options) -> None:
    name = _required_topic(wanted)
    if wanted.replica_assignment and (wanted.partitions or wanted.replication_factor):
        raise click.UsageError("--replica-assignment already sets partitions and replicas")
    if "." in name or "_" in name:
        click.echo(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    try:
        admin.create_topic(
            client,
            name,
            partitions=wanted.partitions,
            replication_factor=wanted.replication_factor,
            assignment=parse_assignment(wanted.replica_assignment),
            configs=dict(options.key_value("--config", one) for one in wanted.config),
        )
    except admin.RequestRefused as refused:
        if refused.error is ErrorCode.topic_already_exists and wanted.if_not_exists:
            return
        raise
    click.echo(f"Created topic {name}.")


def list_(client: Client, wanted: Options) -> None:
    click.echo("\n".join(_matching(client, wanted)))


def alter(client: Client, wanted: Options) -> None:
    _required_topic(wanted)
    if wanted.partitions is None:
        raise click.UsageError("--alter needs --partitions")
    names = _existing(client, wanted)
    assignment = parse_assignment(wanted.replica_assignment)
    placed = {}
    if assignment:
        for topic in admin.describe_from_metadata(client, names):
            placed[topic.name] = assignment[len(topic.partitions) :]
    if names:
        admin.add_partitions(client, names, wanted.partitions, placed)


def delete(client: Client, wanted: Options) -> None:
    _required_topic(wanted)
    if names := _existing(client, wanted):
        admin.delete_topics(client, names)


def describe(client: Client, wanted: Options) -> None:
    if wanted.if_exists and not (wanted.topic or wanted.topic_id):
        raise click.UsageError("--topic or --topic-id is needed to describe a topic")
    only = Filter(
        under_replicated=wanted.under_replicated_partitions,
        at_min_isr=wanted.at_min_isr_partitions,
        under_min_isr=wanted.under_min_isr_partitions,
        unavailable=wanted.unavailable_partitions,
    )
    if wanted.topics_with_overrides and any(only):
        raise click.UsageError("--topics-with-overrides does not go with a filter on partitions")
    topic_id = parse_topic_id(wanted.topic_id) if wanted.topic_id else ZERO_TOPIC_ID
    if topic_id != ZERO_TOPIC_ID:
        found = [topic.name for topic in admin.topics(client) if topic.id == topic_id]
        if not found and not wanted.if_exists:
            raise UserError(f"TopicId '{wanted.topic_id}' does not exist as expected.")
        described = admin.describe_from_metadata(client, found) if found else []
    else:
        found = _existing(client, wanted)
        page = wanted.partition_size_limit_per_response
        described = admin.describe(client, found, page) if found else []
    for line in report(client, described, only, overrides=wanted.topics_with_overrides):
        click.echo(line)


def parse_assignment(text: str | None) -> list[list[NodeId]]:
    """Parse `1:2,2:3`, the brokers of each partition. All must have the same number of brokers."""
    if not text:
        return []
    try:
        assignment = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment: {text!r} is not like 1:2,2:3") from None
    for index, brokers in enumerate(assignment):
        if len(set(brokers)) != len(brokers):
            raise UserError(f"Partition {index} has the same broker twice: {brokers}.")
        if len(brokers) != len(assignment[0]):
            raise UserError(f"Partition {index} has different replication factor: {brokers}.")
    return assignment


def parse_topic_id(text: str) -> UUID:
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return UUID(bytes=raw)
    except (BadBase64, ValueError):
        raise UserError(f"--topic-id: {text!r} is not a topic id.") from None


def topic_pattern(text: str) -> re.Pattern[str]:
    """Kafka's include list: regular expressions that match whole names, separated by commas."""
    try:
        return re.compile(text.strip().strip("\"'").replace(",", "|").replace(" ", ""))
    except re.error as error:
        raise click.UsageError(f"--topic: {text!r} is no regular expression: {error}") from None


def _required_topic(wanted: Options) -> str:
    if not wanted.topic:
        raise click.UsageError("--topic is needed")
    return wanted.topic


def _matching(client: Client, wanted: Options) -> list[str]:
    pattern = topic_pattern(wanted.topic) if wanted.topic else None
    return [
        topic.name
        for topic in admin.topics(client)
        if (pattern is None or pattern.fullmatch(topic.name))
        and not (topic.is_internal and wanted.exclude_internal)
    ]


def _existing(client: Client, wanted: Options) -> list[str]:
    names = _matching(client, wanted)
    if not names and wanted.topic and not wanted.if_exists:
        raise UserError(f"Topic '{wanted.topic}' does not exist as expected.")
    return names
