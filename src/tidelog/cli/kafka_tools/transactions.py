"""`tidelog transactions`: shows and ends transactions, as kafka-transactions.sh does."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from tidelog.cli import options
from tidelog.cli.finding import found_bootstrap
from tidelog.cli.output.transaction_report import described, hanging, listed, producers
from tidelog.client.admin import RequestRefused
from tidelog.client.administration import transaction_admin
from tidelog.client.administration.hanging_transactions import find_hanging
from tidelog.client.administration.transaction_admin import OpenTransaction
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, TopicPartition
from tidelog.model.user_error import UserError

F = TypeVar("F", bound=Callable[..., Any])

WITHOUT_EPOCH = 0
"""The coordinator epoch of the marker if the partition never had one of this producer."""


@click.group("transactions")
@options.bootstrap_server
@options.command_config("--command-config")
@click.pass_context
def command(context: click.Context, bootstrap_server: str) -> None:
    """Look at transactions, and end those that hang, with the flags of kafka-transactions.sh."""
    context.obj = bootstrap_server


def _connected(subcommand: F) -> F:
    """Kafka's tool takes --bootstrap-server before the subcommand. After it, it works as well."""
    subcommand = click.option(
        "--bootstrap-server", metavar="HOST:PORT,...", help="The addresses of brokers."
    )(subcommand)
    return click.pass_context(subcommand)  # type: ignore[return-value]


def _client(context: click.Context, bootstrap_server: str | None) -> Client:
    return Client(bootstrap_server or context.obj or found_bootstrap(), tell=options.tell)


def _partition(command: F) -> F:
    command = click.option("--partition", type=int, required=True, help="The partition.")(command)
    return click.option("--topic", required=True, help="The topic.")(command)


@command.command("list")
@click.option(
    "--duration-filter",
    type=int,
    default=-1,
    metavar="MS",
    help="List only transactions that have run for longer.",
)
@click.option(
    "--transactional-id-pattern", metavar="REGEX", help="List only the ids that match (RE2)."
)
@_connected
def list_(
    context: click.Context,
    duration_filter: int,
    transactional_id_pattern: str | None,
    bootstrap_server: str | None,
) -> None:
    """List the transactional ids of all coordinators."""
    with _client(context, bootstrap_server) as client:
        found = transaction_admin.list_transactions(
            client, longer_than_ms=duration_filter, pattern=transactional_id_pattern
        )
    _print(listed(found))


@command.command("describe")
@click.option("--transactional-id", required=True, metavar="ID", help="The transactional id.")
@_connected
def describe(context: click.Context, transactional_id: str, bootstrap_server: str | None) -> None:
    """Describe the transaction of a transactional id."""
    with _client(context, bootstrap_server) as client:
        try:
            coordinator, state = transaction_admin.describe_transaction(client, transactional_id)
        except RequestRefused as refused:
            raise _not_described(transactional_id, refused) from refused
    _print(described(coordinator, state, _now()))


@command.command("describe-producers")
@click.option("--broker-id", type=int, metavar="ID", help="Ask the replica of this broker.")
@_partition
@_connected
def describe_producers(
    context: click.Context,
    broker_id: int | None,
    topic: str,
    partition: int,
    bootstrap_server: str | None,
) -> None:
    """Describe the producers that have written to a partition."""
    where = TopicPartition(topic, partition)
    broker = "leader" if broker_id is None else f"broker {broker_id}"
    failed = f"Failed to describe producers for partition {where} on {broker}"
    with _client(context, bootstrap_server) as client:
        try:
            found = transaction_admin.describe_producers(client, where, broker_id)
        except RequestRefused as refused:
            raise _failure(failed, refused) from refused
    _print(producers(found))


@command.command("abort")
@_partition
@click.option("--start-offset", type=int, metavar="OFFSET", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="ID", help="Its producer, without the offset.")
@click.option("--producer-epoch", type=int, metavar="EPOCH", help="Goes with --producer-id.")
@click.option("--coordinator-epoch", type=int, metavar="EPOCH", help="Goes with --producer-id.")
@_connected
def abort(
    context: click.Context,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    bootstrap_server: str | None,
) -> None:
    """Abort a transaction that hangs in a partition."""
    where = TopicPartition(topic, partition)
    if start_offset is None and producer_id is None:
        raise UserError(
            "The transaction to abort must be identified either with --start-offset "
            "(for brokers on 3.0 or above) or with --producer-id, --producer-epoch, and "
            "--coordinator-epoch (for older brokers)"
        )
    with _client(context, bootstrap_server) as client:
        if start_offset is not None:
            found = _starting_at(client, where, start_offset)
        elif producer_epoch is None:
            raise UserError("Missing required argument --producer-epoch")
        elif coordinator_epoch is None:
            raise UserError("Missing required argument --coordinator-epoch")
        else:
            assert producer_id is not None
            found = OpenTransaction(where, producer_id, producer_epoch, coordinator_epoch)
        try:
            transaction_admin.abort_transaction(client, found)
        except RequestRefused as refused:
            raise _failure("Failed to abort transaction", refused) from refused


def _starting_at(client: Client, where: TopicPartition, start_offset: int) -> OpenTransaction:
    try:
        found = transaction_admin.describe_producers(client, where)
    except RequestRefused as refused:
        raise _failure("Failed to validate transaction", refused) from refused
    for one in found:
        if one.current_txn_start_offset == start_offset != NO_OFFSET:
            epoch = one.coordinator_epoch if one.coordinator_epoch >= 0 else WITHOUT_EPOCH
            return OpenTransaction(where, one.producer_id, one.producer_epoch, epoch)
    raise UserError(
        f"Could not find any open transactions starting at offset {start_offset} "
        f"on partition {where}"
    )


@command.command("find-hanging")
@click.option("--broker-id", type=int, metavar="ID", help="Search the replicas of this broker.")
@click.option(
    "--max-transaction-timeout",
    type=int,
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="The largest timeout of a transaction that does not hang.",
)
@click.option("--topic", help="Search this topic only.")
@click.option("--partition", type=int, help="Search this partition of --topic only.")
@_connected
def find_hanging_command(
    context: click.Context,
    broker_id: int | None,
    max_transaction_timeout: int,
    topic: str | None,
    partition: int | None,
    bootstrap_server: str | None,
) -> None:
    """Find transactions in partitions that no coordinator will end."""
    if topic is None and broker_id is None:
        raise UserError(
            "The `find-hanging` command requires either --topic or --broker-id "
            "to limit the scope of the search"
        )
    if topic is None and partition is not None:
        raise UserError("The --partition argument requires --topic to be provided")
    now = _now()
    with _client(context, bootstrap_server) as client:
        replicas = transaction_admin.partitions_with_replicas(
            client, None if topic is None else (topic,)
        )
        searched = [
            one
            for one, nodes in sorted(replicas.items())
            if partition in (None, one.partition) and (broker_id is None or broker_id in nodes)
        ]
        oldest = now - max_transaction_timeout * 60_000
        found = list(find_hanging(client, searched, broker_id, oldest))
    _print(hanging(found, now))


@command.command("forceTerminateTransaction")
@click.option("--transactionalId", "transactional_id", required=True, help="The transactional id.")
@_connected
def force_terminate(
    context: click.Context, transactional_id: str, bootstrap_server: str | None
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer."""
    with _client(context, bootstrap_server) as client:
        try:
            transaction_admin.force_terminate(client, transactional_id)
        except RequestRefused as refused:
            failed = f"Failed to force terminate transactionalId `{transactional_id}`"
            raise _failure(failed, refused) from refused


def _not_described(transactional_id: str, refused: RequestRefused) -> UserError:
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    reason = None
    if refused.error is ErrorCode.transactional_id_not_found:
        reason = (
            f"DescribeTransactions request for transactionalId `{transactional_id}` failed "
            "because the ID could not be found"
        )
    return _failure(what, refused, reason)


def _failure(what: str, refused: RequestRefused, reason: str | None = None) -> UserError:
    reason = reason or default_message(refused.error).rstrip(".")
    return UserError(f"{what}: {reason}. Enable debug logging for additional detail.")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)
