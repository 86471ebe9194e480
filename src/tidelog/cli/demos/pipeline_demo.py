"""`tidelog pipeline demo`: ingests orders on Spark while brokers die, and audits the result."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

import click

from tidelog.cli.demos.orders import OrderLoad
from tidelog.cli.demos.screen import Screen
from tidelog.cli.pipeline import prepare
from tidelog.client import admin
from tidelog.client.administration import quorum_admin
from tidelog.client.client import Client
from tidelog.clusters.throwaway_cluster import ThrowawayCluster
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.model.user_error import UserError

TOPIC = "orders"
BROKERS = 3
PARTITIONS = 6
POLL_SECONDS = 0.05
ANSWER_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
ACT_SECONDS = 10.0
"""How long each act is shown before the next act starts, at pace 1."""

T = TypeVar("T")


@click.command("demo")
@click.option(
    "--pace",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="The pace: 1 takes about two minutes, 0.1 is faster.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The directory for tables, page and ledger; by default a temporary directory.",
)
def command(pace: float, out: str | None) -> int:
    """Run ingest, health and audit on Spark while brokers are killed.

    The demo writes a stream of orders to three brokers. Spark writes the orders to a table and
    monitors the replicas. Meanwhile two brokers are killed. At the end the demo prints the table's
    row count, the path of a health page and the result of the audit. The status is 0 if no
    acknowledged record is lost or duplicated.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    prepare()
    screen = Screen()
    place = Path(out or tempfile.mkdtemp(prefix="tidelog-pipeline-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    screen.say("Starting three brokers, each also a controller, in a process of its own.")
    with ThrowawayCluster(BROKERS, {"tidelog.replication.events.enable": "true"}) as cluster:
        ledger = place / "ledger.jsonl"
        load = OrderLoad(cluster.bootstrap, TOPIC, str(ledger))
        with Client(cluster.bootstrap, ANSWER_SECONDS) as client:
            make_topic(client)
            with Spark(cluster.bootstrap, ledger, place) as spark:
                story = PipelineDemo(screen, cluster, client, load, spark)
                found = story.tell(ACT_SECONDS * pace)
        screen.say("Stopping the brokers.")
    return conclude(found)


def make_topic(client: Client) -> None:
    with admin.topic_may_exist():
        admin.create_topic(
            client,
            TOPIC,
            partitions=PARTITIONS,
            replication_factor=BROKERS,
            assignment=(),
            configs={"min.insync.replicas": "2"},
        )


def conclude(found: dict[str, Any]) -> int:
    """Print the results of the pipeline, and return the exit status."""
    rows, expected = found["rows"], found["acknowledged"] + found["unacknowledged"]
    click.echo(f"\ntable   {rows:,} rows in {found['table']}")
    click.echo(f"health  {found['page']}")
    click.echo(f"audit   {found['sentence']}")
    return 0 if found["is_clean"] and rows == expected else 1


class Spark:
    """The process of the pipeline. To end the stream of orders, close its standard input."""

    def __init__(self, bootstrap: str, ledger: Path, out: Path) -> None:
        self._argv = [
            *(sys.executable, "-P", "-m", "tidelog_pipelines.jobs.demo"),
            *("--bootstrap-server", bootstrap, "--topic", TOPIC),
            *("--ledger", str(ledger), "--out", str(out)),
        ]
        self.lines: SimpleQueue[str] = SimpleQueue()

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
        )
        self._listener = Thread(target=self._listen, name="spark", daemon=True)
        self._listener.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.put(line.rstrip())

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def result(self) -> dict[str, Any]:
        """The results, from the last printed line. Valid only after the process has ended."""
        assert self._process.stdout is not None
        said = self._process.stdout.read().splitlines()
        if self._process.returncode != 0 or not said:
            raise UserError("the pipeline has failed; its messages are above.")
        found: dict[str, Any] = json.loads(said[-1])
        return found


class PipelineDemo:
    """Runs the acts of the demo in order."""

    def __init__(
        self,
        screen: Screen,
        cluster: ThrowawayCluster,
        client: Client,
        load: OrderLoad,
        spark: Spark,
    ) -> None:
        self._screen = screen
        self._cluster = cluster
        self._client = client
        self._load = load
        self._spark = spark
        self._batches = 0

    def tell(self, act_seconds: float) -> dict[str, Any]:
        self._client.partitions(TOPIC)
        self._load.start()
        self._screen.say(
            f"A producer writes orders with acks=all to {PARTITIONS} partitions of topic {TOPIC}; "
            "Spark is starting."
        )
        self._await(lambda: self._batches, "the first rows in the table")
        self._watch(act_seconds)
        self._die(self._leader, "the leader of partition 0", act_seconds)
        self._die(self._controller, "the active controller", act_seconds)
        self._load.stop()
        self._screen.say(f"The producer has stopped: {self._load.acknowledged:,} acknowledged.")
        self._spark.end()
        self._await(lambda: self._spark.is_over, "the pipeline's results")
        self._hear()
        return self._spark.result()

    def _die(self, choose: Callable[[], NodeId | None], role: str, act_seconds: float) -> None:
        node = self._await(choose, "a broker to kill")
        self._load.longest_wait_ms = 0
        self._screen.say(f"kill -9 of broker {node}, {role}.")
        before = self._load.acknowledged
        self._cluster.kill(node)
        self._await(lambda: self._load.acknowledged > before + 100, "an acknowledgement")
        self._screen.say(
            f"Writes continue; the longest wait for an acknowledgement was "
            f"{self._load.longest_wait_ms} ms."
        )
        self._watch(act_seconds)
        self._cluster.start(node)
        self._await(lambda: self._is_whole(), f"the return of broker {node}")
        self._screen.say(f"Broker {node} is back, and all replicas are in sync.")
        self._watch(act_seconds / 2)

    def _leader(self) -> NodeId | None:
        (topic,) = self._client.metadata((TOPIC,)).topics
        (leader,) = [one.leader_id for one in topic.partitions if one.partition_index == 0]
        return None if leader == NO_NODE else leader

    def _controller(self) -> NodeId | None:
        return quorum_admin.active_controller(self._client)

    def _is_whole(self) -> bool:
        (topic,) = self._client.metadata((TOPIC,)).topics
        return all(len(one.isr_nodes) == BROKERS for one in topic.partitions)

    def _watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._await(lambda: time.monotonic() >= until, "the end of an act")

    def _await(self, attempt: Callable[[], T | None], what: str) -> T:
        """Poll until `attempt` returns a true value. Print the output of Spark meanwhile."""
        limit = time.monotonic() + PATIENCE_SECONDS
        while True:
            self._hear()
            self._load.check()
            if result := attempt():
                return result
            if self._spark.is_over and what != "the pipeline's results":
                self._hear()
                raise UserError("the pipeline has ended too early.")
            if time.monotonic() > limit:
                raise UserError(f"the demo has timed out waiting for {what}.")
            self._screen.status(
                f"acknowledged {self._load.acknowledged:,}, {self._batches} batches in the table"
            )
            time.sleep(POLL_SECONDS)

    def _hear(self) -> None:
        while True:
            try:
                line = self._spark.lines.get_nowait()
            except Empty:
                return
            self._batches += line.startswith("batch ")
            self._screen.say(f"  spark: {line.removeprefix('tidelog: ')}")
