"""`tidelog elect`: elects leaders, as kafka-leader-election.sh does."""

import click

from tidelog.cli import options
from tidelog.cli.json_file import read_json
from tidelog.client.administration.partition_admin import (
    PREFERRED,
    UNCLEAN,
    PartitionOutcome,
    elect_leaders,
)
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import exception_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError

TYPES = {"preferred": PREFERRED, "unclean": UNCLEAN}


@click.command("elect")
@click.option(
    "--election-type",
    required=True,
    type=click.Choice(list(TYPES), case_sensitive=False),
    help="preferred: the first replica; unclean: any live replica, if there is no leader.",
)
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="The topic; needs --partition.")
@click.option("--partition", type=click.IntRange(0, 2**31 - 1), help="The partition of --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need an election.")
@click.option(
    "--path-to-json-file",
    metavar="FILE",
    help='The partitions: {"partitions": [{"topic": "t", "partition": 0}]}',
)
@options.command_config("--command-config", "--admin.config")
def command(
    election_type: str,
    bootstrap_server: str,
    topic: str | None,
    partition: int | None,
    all_topic_partitions: bool,
    path_to_json_file: str | None,
) -> None:
    """Elect the preferred leaders of partitions, or leaders of partitions that have none."""
    if sum((topic is not None, all_topic_partitions, path_to_json_file is not None)) != 1:
        raise click.UsageError(
            "exactly one of --topic, --all-topic-partitions and --path-to-json-file is needed"
        )
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition go together")
    partitions: set[TopicPartition] | None = None
    if topic is not None and partition is not None:
        partitions = {TopicPartition(topic, partition)}
    elif path_to_json_file is not None:
        partitions = read_partitions(path_to_json_file)
    with Client(bootstrap_server, tell=options.tell) as client:
        outcome = elect_leaders(client, TYPES[election_type.lower()], partitions)
    report(election_type.upper(), outcome)


def read_partitions(path: str) -> set[TopicPartition]:
    data = read_json(path, "Replica election data is empty")
    if "partitions" not in data:
        raise UserError('Replica election data is missing "partitions" field')
    found = [one.partition() for one in data.objects("partitions")]
    twice = sorted({one for one in found if found.count(one) > 1})
    if twice:
        names = ", ".join(map(str, twice))
        raise UserError(f"Replica election data contains duplicate partitions: [{names}]")
    return set(found)


def report(how: str, outcome: dict[TopicPartition, PartitionOutcome]) -> None:
    """Print the outcome; if an election failed, end with an error."""
    by_error: dict[ErrorCode, list[TopicPartition]] = {}
    for where, (error, _) in sorted(outcome.items()):
        by_error.setdefault(error, []).append(where)
    elected = by_error.pop(ErrorCode.none, [])
    needless = by_error.pop(ErrorCode.election_not_needed, [])
    failed = sorted(where for partitions in by_error.values() for where in partitions)
    if elected:
        names = ", ".join(map(str, elected))
        click.echo(f"Successfully completed leader election ({how}) for partitions {names}")
    if needless:
        names = ", ".join(map(str, needless))
        click.echo(f"Valid replica already elected for partitions {names}")
    for where in failed:
        click.echo(
            f"Error completing leader election ({how}) for partition: {where}: "
            f"{exception_text(*outcome[where])}"
        )
    if failed:
        raise UserError(f"{len(failed)} replica(s) could not be elected")
