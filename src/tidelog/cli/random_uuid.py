"""`tidelog random-uuid`: an id for a new cluster, in the form that Kafka gives ids."""

from base64 import urlsafe_b64encode

import click

from tidelog.runtime.dice import SystemDice


def new_cluster_id() -> str:
    return urlsafe_b64encode(SystemDice().uuid().bytes).decode().rstrip("=")


@click.command("random-uuid")
def command() -> None:
    """Print a new cluster id, for `tidelog format --cluster-id`."""
    click.echo(new_cluster_id())
