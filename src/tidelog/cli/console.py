"""`tidelog console`: serves the web console of a cluster."""

from pathlib import Path
from typing import NamedTuple

import click

from tidelog.cli import options
from tidelog.clusters import control
from tidelog.clusters.running_clusters import running_clusters
from tidelog.model.ids import NodeId


class UpNodes(NamedTuple):
    """The nodes of `tidelog up` in a directory, which obeys through its control socket."""

    directory: Path

    def act(self, action: str, node: NodeId) -> str:
        return control.ask(self.directory, f"{action} {node}")


@click.command("console")
@options.bootstrap_server
@click.option(
    "--listen",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to serve on. On any but the loopback address, a token is needed.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=8080,
    show_default=True,
    help="The port; if it is in use, the next free one is taken.",
)
@click.option("--token", metavar="TEXT", help="The token that a browser must send.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of a local `up`, whose nodes can be killed and started on the page.",
)
def command(
    bootstrap_server: str,
    host: str,
    port: int,
    token: str | None,
    read_only: bool,
    directory: Path | None,
) -> None:
    """Serve the web console: a cluster in the browser, live.

    It shows brokers, topics, each replica's log with its end offset and the high watermark, why a
    partition is as it is, records, and consumer groups. It works on Apache Kafka as well.
    """
    from tidelog.console import server  # slow to import

    chosen = server.ConsoleOptions(bootstrap_server, host, port, read_only, token)
    sock = server.listen(host, port)
    needed = server.token_for(chosen)
    click.echo(f"console {server.address_of(sock, host, needed)}")
    directory = directory or _local_directory(bootstrap_server)
    server.serve(chosen, sock, needed, None if directory is None else UpNodes(directory))


def _local_directory(bootstrap: str) -> Path | None:
    """The directory of the `up` on this machine that has these brokers, if there is one."""
    asked = set(bootstrap.split(","))
    for one in running_clusters():
        if asked & set(one.bootstrap.split(",")):
            return one.directory
    return None
