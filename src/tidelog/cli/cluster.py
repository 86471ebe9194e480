"""`tidelog cluster`: describes the cluster, and prints its id as kafka-cluster.sh does."""

from collections.abc import Iterator, Sequence

import click
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker

from tidelog.cli import options
from tidelog.cli.output.table import table
from tidelog.client.administration import quorum_admin
from tidelog.client.administration.feature_admin import FeatureRange, describe_features
from tidelog.client.client import Client
from tidelog.model.user_error import UserError


@click.group("cluster")
def command() -> None:
    """Describe the cluster."""


@command.command("cluster-id")
@options.bootstrap_server
@options.command_config("-c", "--config")
def cluster_id(bootstrap_server: str) -> None:
    """Print the cluster's id, as kafka-cluster.sh does."""
    with Client(bootstrap_server, tell=options.tell) as client:
        click.echo(f"Cluster ID: {quorum_admin.describe_cluster(client).cluster_id}")


@command.command("describe")
@options.bootstrap_server
def describe(bootstrap_server: str) -> None:
    """Print the cluster's id, its active controller, its brokers and its features."""
    with Client(bootstrap_server, options.PATIENCE_SECONDS) as client:
        cluster = quorum_admin.describe_cluster(client)
        try:
            answer = quorum_admin.describe_quorum(client)
            controller = f"node {answer.topics[0].partitions[0].leader_id}"
        except UserError as failure:
            controller = f"none: {failure}"
        click.echo(f"Cluster     {cluster.cluster_id}")
        click.echo(f"Controller  {controller}\n")
        for line in brokers_table(cluster.brokers):
            click.echo(line)
        click.echo()
        for line in features_table(describe_features(client).ranges):
            click.echo(line)


def brokers_table(brokers: Sequence[DescribeClusterBroker]) -> Iterator[str]:
    rows = [
        (
            str(one.broker_id),
            f"{one.host}:{one.port}",
            one.rack or "-",
            "fenced" if one.is_fenced else "active",
        )
        for one in brokers
    ]
    return table(("BROKER", "ADDRESS", "RACK", "STATE"), rows)


def features_table(found: Sequence[FeatureRange]) -> Iterator[str]:
    rows = [
        (one.name, str(one.finalized), f"{one.supported[0]} to {one.supported[1]}") for one in found
    ]
    return table(("FEATURE", "LEVEL", "SUPPORTED"), rows)
