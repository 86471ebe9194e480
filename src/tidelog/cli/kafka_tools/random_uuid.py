"""`tidelog random-uuid`: prints an id for a new cluster, in the format of Kafka's ids."""

import click

from tidelog.clusters.formatting import new_cluster_id


@click.command("random-uuid")
def command() -> None:
    """Print a new cluster id, for `tidelog format --cluster-id`."""
    click.echo(new_cluster_id())
