"""The lines that `tidelog up` prints as soon as its cluster is ready."""

from collections.abc import Iterator
from pathlib import Path

from tidelog.cli.tables import DIRECTORY
from tidelog.clusters.local_cluster import LocalCluster

FIRST_COMMAND = "topics --create --topic hello --partitions 3"
LATER_COMMAND = "topics --list"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def start_block(
    cluster: LocalCluster,
    program: str,
    *,
    is_new: bool,
    tables: Path | None = None,
    console: str | None = None,
) -> Iterator[str]:
    """The addresses of the cluster, its directory, and a command to try next.

    Scripts read the first line, so its form must not change.
    """
    yield f"bootstrap {cluster.bootstrap}"
    if console is not None:
        yield f"console   {console}"
    if cluster.has_metrics:
        others = cluster.brokers - 1
        more = f" and {WORDS[others] if others < len(WORDS) else others} more" if others else ""
        yield f"metrics   {cluster.metrics_address(1)}{more}"
    yield f"directory {cluster.directory}"
    if tables is not None:
        where = "" if tables == cluster.directory / DIRECTORY else f" --out {tables}"
        yield f"tables    {tables} (`{program} tables{where}` shows them)"
    yield f"export    TIDELOG_BOOTSTRAP_SERVER={cluster.bootstrap}"
    yield f"next      {program} {FIRST_COMMAND if is_new else LATER_COMMAND}"
    yield "          (in another terminal; Ctrl-C stops the cluster, its data stays)"
