"""`tidelog log-dirs`: describes log directories as JSON, as kafka-log-dirs.sh does."""

import json
from typing import Any

import click

from tidelog.cli import options
from tidelog.client.administration.partition_admin import DescribedLogDir, describe_log_dirs
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import exception_class
from tidelog.model.errors import ErrorCode
from tidelog.model.user_error import UserError


@click.command("log-dirs")
@click.option("--describe", is_flag=True, required=True, help="Describe the directories.")
@options.bootstrap_server
@click.option("--topic-list", metavar="T,T", default="", help="Only these topics.")
@click.option("--broker-list", metavar="ID,ID", default="", help="Only these brokers.")
@options.command_config("--command-config")
def command(describe: bool, bootstrap_server: str, topic_list: str, broker_list: str) -> None:
    """Show the log directories of brokers, and the size and the lag of each replica."""
    topics = set(filter(None, topic_list.split(",")))
    wanted = parse_brokers(broker_list)
    with Client(bootstrap_server, tell=options.tell) as client:
        known = client.node_ids()
        missing = [broker for broker in wanted if broker not in known]
        if missing:
            raise UserError(
                "ERROR: The given brokers do not exist from --broker-list: "
                f"{_ids(missing)}. Current existent brokers: {_ids(known)}"
            )
        click.echo("Querying brokers for log directories information")
        brokers = wanted or known
        found = {broker: describe_log_dirs(client, broker) for broker in brokers}
    click.echo(f"Received log directory information from brokers {_ids(brokers)}")
    click.echo(json.dumps(as_json(found, topics), separators=(",", ":")))


def parse_brokers(text: str) -> list[int]:
    ids = [part.strip() for part in text.split(",") if part]
    for one in ids:
        if not one.isdecimal():
            raise click.UsageError(f"--broker-list: {one!r} is not a broker's id")
    return sorted({int(one) for one in ids})


def as_json(found: dict[int, list[DescribedLogDir]], topics: set[str]) -> dict[str, Any]:
    """The directories of each broker; `topics` restricts the replicas if it is not empty."""
    brokers = [
        {"broker": broker, "logDirs": [_directory(one, topics) for one in directories]}
        for broker, directories in found.items()
    ]
    return {"brokers": brokers, "version": 1}


def _directory(directory: DescribedLogDir, topics: set[str]) -> dict[str, Any]:
    has_failed = directory.error is not ErrorCode.none
    return {
        "partitions": [
            {
                "partition": str(one.partition),
                "size": one.size,
                "offsetLag": one.offset_lag,
                "isFuture": one.is_future,
            }
            for one in directory.replicas
            if not topics or one.partition.topic in topics
        ],
        "error": exception_class(directory.error) if has_failed else None,
        "logDir": directory.path,
    }


def _ids(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))
