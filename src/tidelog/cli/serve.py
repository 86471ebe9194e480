"""`tidelog serve`: runs one node."""

import click

from tidelog.cli import options
from tidelog.cli.serving import serve


@click.command("serve")
@click.option(
    "--config", required=True, metavar="FILE", help="A server.properties with Kafka's keys."
)
@click.option("--override", multiple=True, metavar="KEY=VALUE", help="Replace a key of the file.")
def command(config: str, override: tuple[str, ...]) -> int:
    """Run one node in the foreground with the settings of its server.properties.

    The log directories are prepared by `tidelog format` first. SIGTERM and Ctrl-C end in a
    controlled shutdown.
    """
    return serve(config, dict(options.key_value("--override", one) for one in override))
