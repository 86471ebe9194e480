"""`tidelog quorum`: describes the quorum, with the flags and output of kafka-metadata-quorum."""

import time

import click
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

from tidelog.cli import options
from tidelog.cli.output import quorum_report
from tidelog.client.administration import quorum_admin
from tidelog.client.client import Client


@click.group("quorum")
@options.bootstrap
@click.pass_context
def command(
    context: click.Context, bootstrap_server: str | None, bootstrap_controller: str | None
) -> None:
    """Look at the quorum of controllers, with the flags of kafka-metadata-quorum.sh."""
    context.obj = (bootstrap_server, bootstrap_controller)


@command.command("describe")
@click.option("--status", is_flag=True, help="Show the leader, the voters and their lag.")
@click.option("--replication", is_flag=True, help="Show the lag of each voter and observer.")
@click.option("--human-readable", is_flag=True, help="Show ages instead of timestamps.")
@options.bootstrap
@click.pass_context
def describe(
    context: click.Context,
    status: bool,
    replication: bool,
    human_readable: bool,
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
) -> None:
    """Describe the metadata quorum, or explain why it has no leader."""
    if status == replication:
        raise click.UsageError("exactly one of --status and --replication is needed")
    if human_readable and not replication:
        raise click.UsageError("--human-readable goes with --replication only")
    server, controller = context.obj  # Kafka's tool takes these options before `describe`
    client, is_controller = options.connect(
        bootstrap_server or server, bootstrap_controller or controller
    )
    with client:
        answer = quorum_admin.describe_quorum(client, controllers=is_controller)
        for line in _lines(client, answer, status, human_readable, is_controller):
            click.echo(line)


def _lines(
    client: Client,
    answer: DescribeQuorumResponse,
    status: bool,
    human_readable: bool,
    is_controller: bool,
) -> list[str]:
    if status:
        cluster = quorum_admin.describe_cluster(client, controllers=is_controller)
        return list(quorum_report.status(cluster.cluster_id, answer))
    now = time.time_ns() // 1_000_000 if human_readable else None
    return list(quorum_report.replication(answer, now))
