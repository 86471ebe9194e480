"""`tidelog up`: a local cluster in the foreground."""

from pathlib import Path

import click

from tidelog.cli import options
from tidelog.clusters.child import NodeToRun
from tidelog.clusters.cluster_directory import ClusterDirectory
from tidelog.clusters.control import ControlSocket
from tidelog.clusters.local_cluster import HIGHEST_PORT, LocalCluster
from tidelog.clusters.supervisor import Supervisor, run_until_interrupted
from tidelog.model.ids import NodeId
from tidelog.runtime.logs import log_to_stderr

DEFAULT_BROKERS = 3
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
    help="Where the cluster keeps its data; made and formatted on first use.",
)
@click.option(
    "--port",
    "first_port",
    type=click.IntRange(1024, HIGHEST_PORT - 1),
    default=9092,
    show_default=True,
    metavar="FIRST",
    help="The first broker's port on 127.0.0.1; the next broker takes the next port.",
)
@click.option("--no-restart", is_flag=True, help="Leave a node that dies dead.")
@click.option(
    "--override", multiple=True, metavar="KEY=VALUE", help="Set a key of every server.properties."
)
def command(
    brokers: int | None,
    directory: Path,
    first_port: int,
    no_restart: bool,
    override: tuple[str, ...],
) -> int:
    """Start a local cluster and stay in the foreground until Ctrl-C.

    As soon as the cluster takes writes, one line `bootstrap HOST:PORT,...` is printed, and
    DIR/cluster.json holds the id, pid and ports of each node, that of its Prometheus metrics among
    them. Every node is broker and controller in a process of its own; one that dies is started
    again. `tidelog node` stops, kills, pauses and starts single ones. Data stays in DIR: the next
    `up` goes on where this one ended.
    """
    given = dict(options.key_value("--override", one) for one in override)
    for key in sorted(OWN_KEYS & given.keys()):
        raise click.UsageError(f"--override: {key} is what `up` itself sets for each node")
    overrides = {"tidelog.replication.events.enable": "true", **given}
    brokers = brokers or ClusterDirectory(directory).brokers or DEFAULT_BROKERS
    cluster = LocalCluster(directory, brokers, first_port, overrides, has_metrics=True)
    cluster.claim()
    try:
        earlier = ClusterDirectory(directory)
        earlier.await_end_of_nodes(options.tell)
        for sentence in earlier.check(brokers, cluster.controller_addresses()):
            options.tell(sentence)
        cluster.check_ports()
        cluster.prepare()
        return run(cluster, restart=not no_restart)
    finally:
        cluster.release()


def run(cluster: LocalCluster, *, restart: bool) -> int:
    """Run the nodes until they have all ended. -> the exit status."""

    def tell(node: NodeId, pid: int | None) -> None:
        if cluster.note(node, pid):
            click.echo(f"bootstrap {cluster.bootstrap}")

    log_to_stderr()
    nodes = [NodeToRun(node, str(cluster.config(node))) for node in cluster.node_ids]
    control = ControlSocket(cluster.directory)
    return run_until_interrupted(Supervisor(nodes, tell, restart=restart, control=control))
