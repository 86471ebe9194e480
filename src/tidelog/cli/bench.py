"""`tidelog bench`: measures Tidelog on this machine, alone or beside Apache Kafka."""

import json
import signal
from pathlib import Path

import click

from tidelog.bench.benchmark import GROUP_NAMES, Clusters, measure
from tidelog.bench.kafka_cluster import KafkaCluster, find_jars
from tidelog.bench.measured_cluster import TidelogCluster
from tidelog.bench.measures import FULL, QUICK
from tidelog.bench.page import page
from tidelog.bench.results import Results
from tidelog.bench.usage import check_system
from tidelog.cli.output.table import table


@click.command("bench")
@click.option("--against", type=click.Choice(["kafka"]), help="Measure this system, too.")
@click.option("--quick", is_flag=True, help="One short repeat: a minute instead of ten.")
@click.option(
    "--only",
    type=click.Choice(GROUP_NAMES),
    multiple=True,
    help="Measure only this group; may be repeated.",
)
@click.option("--repeats", type=click.IntRange(min=1), help="Fresh clusters per system.")
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="The length of each load."
)
@click.option(
    "--warm-up",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Load before the first figure.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("docs/benchmarks"),
    show_default=True,
    metavar="DIR",
    help="Where to write results.json and index.html.",
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Where the brokers keep their data; the system's directory for temporary files if absent.",
)
@click.option(
    "--kafka-libs",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The directory of Apache Kafka's jars, for --against kafka.",
)
def command(
    against: str | None,
    quick: bool,
    only: tuple[str, ...],
    repeats: int | None,
    seconds: float | None,
    warm_up: float | None,
    out: Path,
    work: Path | None,
    kafka_libs: Path | None,
) -> None:
    """Measure start, latency, throughput, CPU, memory and failover of three brokers.

    The load is the same for each system, and so are the settings. The systems take turns. The
    command prints a table, and writes all values as JSON and a page with plots. A repeat without
    --quick writes some 15 GB to the disk, and deletes them.
    """
    check_system()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    clusters: Clusters = {"tidelog": TidelogCluster}
    if against is not None:
        jars = find_jars(kafka_libs)
        clusters = {**clusters, "kafka": lambda directory: KafkaCluster(directory, jars)}
    effort = QUICK if quick else FULL
    effort = effort._replace(
        repeats=repeats or effort.repeats,
        seconds=seconds or effort.seconds,
        warm_seconds=warm_up or effort.warm_seconds,
    )
    out.mkdir(parents=True, exist_ok=True)
    results = measure(
        clusters, only or GROUP_NAMES, effort, work, lambda line: click.echo(line, err=True)
    )
    write(results, out)


def write(results: Results, out: Path) -> None:
    """Print the table, and write the JSON file and the page."""
    for line in table(results.heads, list(results.rows())):
        click.echo(line)
    (out / "results.json").write_text(json.dumps(results.as_json(), indent=1) + "\n")
    (out / "index.html").write_text(page(results), encoding="utf-8")
    click.echo(f"\nAll values are in {out / 'results.json'}, plots in {out / 'index.html'}.")
