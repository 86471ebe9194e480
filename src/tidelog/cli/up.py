"""`tidelog up`: a local cluster in the foreground."""

import logging
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import click

from tidelog.cli import options
from tidelog.cli.help.program import program
from tidelog.cli.output.start_block import start_block
from tidelog.cli.tables import DIRECTORY
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.cluster_directory import ClusterDirectory
from tidelog.clusters.companion import Companion
from tidelog.clusters.control import ControlSocket
from tidelog.clusters.free_ports import HOST, is_free
from tidelog.clusters.local_cluster import HIGHEST_PORT, LocalCluster
from tidelog.clusters.running_clusters import forget, remember
from tidelog.clusters.supervisor import Supervisor, run_until_interrupted
from tidelog.model.ids import NodeId
from tidelog.runtime.logs import LEVEL_VARIABLE, log_to_stderr

log = logging.getLogger(__name__)

DEFAULT_BROKERS = 3
TABLES_LOG, CONSOLE_LOG = "tables.log", "console.log"
CONSOLE_PORT, CONSOLE_PORTS = 8080, 20
ADDRESS = re.compile(r"[\w.:%-]+")
EVERY_ADDRESS = ("0.0.0.0", "::")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OWN_KEYS = {
    "node.id",
    "broker.id",
    "process.roles",
    "controller.quorum.voters",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
}


def _named(ctx: click.Context, param: click.Parameter, directory: str) -> Path:
    if not directory:
        raise click.BadParameter("a name is needed")
    return Path(directory)


@click.command("up")
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many brokers.  [default: 3, or as many as DIR has]",
)
@click.option(
    "--dir",
    "directory",
    callback=_named,
    default="tidelog-data",
    show_default=True,
    metavar="DIR",
    help="The directory for the data; it is created and formatted on first use.",
)
@click.option(
    "--port",
    "first_port",
    type=click.IntRange(1024, HIGHEST_PORT - 1),
    default=9092,
    show_default=True,
    metavar="FIRST",
    help="The first broker's port; the next broker takes the next port.",
)
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    metavar="ADDRESS",
    help="The address of this machine on which brokers listen for clients; 0.0.0.0 means all.",
)
@click.option(
    "--advertised-host",
    metavar="ADDRESS",
    help="The address that clients connect to, if it differs from --host.",
)
@click.option("--no-restart", is_flag=True, help="Do not restart a node that dies.")
@click.option(
    "--override", multiple=True, metavar="KEY=VALUE", help="Set a key of every server.properties."
)
@click.option(
    "--tables",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    help="Write and maintain tables of topics with Spark, in DIR.  [default: `tables` in --dir]",
)
@click.option("--no-console", is_flag=True, help="Do not serve the web console beside the nodes.")
@click.option(
    "--verbose", is_flag=True, help="Print all log lines of the nodes, not only warnings."
)
def command(
    brokers: int | None,
    directory: Path,
    first_port: int,
    host: str,
    advertised_host: str | None,
    no_restart: bool,
    override: tuple[str, ...],
    tables: str | None,
    no_console: bool,
    verbose: bool,
) -> int:
    """Start a local cluster and stay in the foreground until Ctrl-C.

    As soon as the cluster is ready, `up` prints its addresses. The first line is `bootstrap
    HOST:PORT,...`, for scripts. DIR/cluster.json lists the id, the pid and the ports of each node.
    Every node is a broker and a controller in its own process, and a node that dies is restarted.
    `tidelog node` stops, kills, pauses and starts single nodes. The data stays in DIR for the next
    `up`. The web console runs beside the nodes, on the loopback address only, and writes its log to
    DIR/console.log. With --tables, `tidelog tables run` also runs beside the nodes, and writes its
    log to DIR/tables.log.
    """
    given = dict(options.key_value("--override", one) for one in override)
    for key in sorted(OWN_KEYS & given.keys()):
        raise click.UsageError(f"--override: {key} is set by `up` for each node")
    overrides = {"tidelog.replication.events.enable": "true", **given}
    brokers = brokers or ClusterDirectory(directory).brokers or DEFAULT_BROKERS
    check_hosts(host, advertised_host)
    cluster = LocalCluster(
        directory,
        brokers,
        first_port,
        overrides,
        has_metrics=True,
        host=host,
        advertised_host=advertised_host,
    )
    cluster.claim()
    try:
        earlier = ClusterDirectory(directory)
        earlier.await_end_of_nodes(options.tell)
        for sentence in earlier.check(brokers, cluster.controller_addresses()):
            options.tell(sentence)
        cluster.check_ports()
        cluster.prepare()
        is_new = earlier.brokers is None
        out = None if tables is None else Path(tables or directory / DIRECTORY)
        beside = Beside(out, None if no_console else console_port())
        return run(cluster, beside, is_new=is_new, restart=not no_restart, verbose=verbose)
    finally:
        if cluster.was_whole:
            forget(directory)
        cluster.release()


def check_hosts(host: str, advertised_host: str | None) -> None:
    """Refuse addresses that clients cannot use. Warn if other machines can reach the address."""
    for option, address in (("--host", host), ("--advertised-host", advertised_host)):
        if address is not None and not ADDRESS.fullmatch(address):
            raise click.UsageError(f"{option}: {address!r} is not an address")
    if advertised_host in EVERY_ADDRESS:
        raise click.UsageError(f"--advertised-host: clients cannot connect to {advertised_host}")
    if host in EVERY_ADDRESS and advertised_host is None:
        raise click.UsageError(
            f"--host {host} also needs --advertised-host, the address that clients connect to"
        )
    if host not in LOOPBACK:
        options.tell(
            "WARNING: this cluster asks for no password, so everyone who can reach "
            f"{advertised_host or host} can read, change and delete all data of this cluster."
        )


class Beside(NamedTuple):
    """The programs that run beside the nodes."""

    tables: Path | None
    """The directory of the tables; None without --tables."""
    console_port: int | None

    @property
    def console(self) -> str | None:
        return None if self.console_port is None else f"http://{HOST}:{self.console_port}"


def console_port() -> int:
    """The usual port of the console, or the next free one."""
    ports = range(CONSOLE_PORT, CONSOLE_PORT + CONSOLE_PORTS)
    return next((port for port in ports if is_free(port)), CONSOLE_PORT)


def run(
    cluster: LocalCluster, beside: Beside, *, is_new: bool, restart: bool, verbose: bool
) -> int:
    """Run the nodes until they have all ended, and return the exit status."""

    def tell(node: NodeId, pid: int | None) -> None:
        was_whole = cluster.was_whole
        if cluster.note(node, pid):
            remember(cluster.directory, cluster.bootstrap)
            for line in start_block(
                cluster, program(), is_new=is_new, tables=beside.tables, console=beside.console
            ):
                click.echo(line)
            if beside.console_port is not None:
                supervisor.accompany(console_run(cluster, beside.console_port))
            if beside.tables is not None:
                supervisor.accompany(tables_run(cluster, beside.tables, verbose=verbose))
        elif was_whole and pid is not None:
            log.info("node %d is ready again", node)

    log_to_stderr()
    if not verbose:
        os.environ[LEVEL_VARIABLE] = "WARNING"  # the node processes inherit the variable
    nodes = [NodeToRun(node, str(cluster.config(node))) for node in cluster.node_ids]
    control = ControlSocket(cluster.directory)
    supervisor = Supervisor(nodes, tell, restart=restart, control=control)
    return run_until_interrupted(supervisor)


def console_run(cluster: LocalCluster, port: int) -> Companion:
    """`tidelog console` as a companion of the nodes."""
    argv = [sys.executable, "-P", "-m", "tidelog.cli.main", "console", "--port", str(port)]
    argv += ["--bootstrap-server", cluster.bootstrap, "--dir", str(cluster.directory)]
    return Companion("`console`", argv, cluster.directory / CONSOLE_LOG)


def tables_run(cluster: LocalCluster, out: Path, *, verbose: bool) -> Companion:
    """`tidelog tables run` as a companion of the nodes. Unless `verbose`, it logs to a file."""
    argv = [sys.executable, "-P", "-m", "tidelog.cli.main", "tables", "run", "--out", str(out)]
    argv += ["--bootstrap-server", cluster.bootstrap]
    return Companion("`tables run`", argv, None if verbose else cluster.directory / TABLES_LOG)
