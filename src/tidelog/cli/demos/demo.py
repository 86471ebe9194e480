"""`tidelog demo`: kills a leader and a controller under load, and counts lost records."""

import signal
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import click

from tidelog.cli.demos.demo_acks import acks
from tidelog.cli.demos.demo_load import Load, Tally, read_back, tally
from tidelog.cli.demos.screen import Screen
from tidelog.cli.replicas import report
from tidelog.client import admin
from tidelog.client.administration import quorum_admin
from tidelog.client.client import Client
from tidelog.client.replica_offsets import look
from tidelog.clusters.throwaway_cluster import ThrowawayCluster
from tidelog.model.ids import NO_NODE, LeaderEpoch, NodeId, Offset
from tidelog.model.user_error import UserError

T = TypeVar("T")

TOPIC = "demo"
BROKERS = 3
POLL_SECONDS = 0.02
STATUS_SECONDS = 0.25
ANSWER_SECONDS = 2.0
PATIENCE_SECONDS = 120.0
ACT_SECONDS = 9.0
"""How long each act is shown before the next act starts, at pace 1."""


class DemoView(NamedTuple):
    """The state of the partition in the metadata that clients get."""

    leader: NodeId
    epoch: LeaderEpoch
    isr: tuple[NodeId, ...]


@click.group("demo", invoke_without_command=True)
@click.option(
    "--pace",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="The pace: 1 takes about a minute, 0.1 is faster.",
)
@click.pass_context
def command(context: click.Context, pace: float) -> int:
    """Kill a leader and a controller under load, and count lost records.

    The demo starts three brokers in a temporary directory, writes records with acks=all, kills two
    nodes with SIGKILL, shows each change, and reads all records back. The status is 0 if no
    acknowledged record is lost and no record is duplicated. `tidelog demo acks` compares settings.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if context.invoked_subcommand is not None:
        return 0
    screen = Screen()
    screen.say("Starting three brokers, each also a controller, in a process of its own.")
    with ThrowawayCluster(BROKERS) as cluster:
        with Client(cluster.bootstrap, ANSWER_SECONDS) as client:
            result = FailoverDemo(screen, cluster, client, ACT_SECONDS * pace).tell()
        screen.say("Stopping the brokers.")
    click.echo(
        f"\nacknowledged {result.acknowledged:,}, lost {result.lost}, "
        f"duplicated {result.duplicated}"
    )
    return 0 if result.is_clean else 1


command.add_command(acks)


class FailoverDemo:
    """Runs the acts of the demo in order."""

    def __init__(
        self, screen: Screen, cluster: ThrowawayCluster, client: Client, act_seconds: float
    ) -> None:
        self._screen = screen
        self._cluster = cluster
        self._client = client
        self._act_seconds = act_seconds
        self._load = Load(cluster.bootstrap, TOPIC)
        self._status_at = 0.0
        self._seen = DemoView(NO_NODE, -1, ())
        self._killed = 0.0
        self._before_kill = 0
        self._mark_before: Offset | None = None

    def tell(self) -> Tally:
        self._begin()
        self._the_leader_dies()
        self._the_controller_dies()
        return self._count()

    # -- The acts ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._screen.title("Three brokers and a stream of writes")
        controller = self._await(self._controller, "an active controller")
        self._screen.say(
            f"The brokers are ready (bootstrap {self._cluster.bootstrap.partition(',')[0]}); "
            f"node {controller} is the active controller."
        )
        with admin.topic_may_exist():
            admin.create_topic(
                self._client,
                TOPIC,
                partitions=1,
                replication_factor=BROKERS,
                assignment=(),
                configs={"min.insync.replicas": "2"},
            )
        self._await(lambda: self._seen.leader != NO_NODE, "a leader")
        self._screen.say(
            f"Topic {TOPIC}: three replicas, min.insync.replicas=2; "
            f"broker {self._seen.leader} leads."
        )
        self._load.start()
        self._screen.say(
            "A producer writes with acks=all: "
            "a batch is acknowledged when all in-sync replicas have it."
        )
        self._watch()
        self._picture()

    def _the_leader_dies(self) -> None:
        self._screen.title("The leader dies")
        leader = self._seen.leader
        killed = self._kill(leader, "the leader")
        self._await(lambda: self._seen.leader not in (leader, NO_NODE), "a new leader")
        self._await_writes(killed)
        self._watch()
        self._picture()
        self._screen.title("The node returns")
        self._return(leader)
        self._watch()

    def _the_controller_dies(self) -> None:
        self._screen.title("The active controller dies")
        controller = self._await(self._controller, "the active controller")
        also = ", and the leader" if controller == self._seen.leader else ""
        killed = self._kill(controller, f"the active controller{also}")
        successor = self._await(lambda: self._controller(controller), "a new controller")
        self._screen.say(
            f"Node {successor} is the active controller, {_ms_since(killed)} ms after the kill."
        )
        self._await_writes(killed)
        self._watch()
        self._return(controller)
        self._watch()

    def _count(self) -> Tally:
        self._screen.title("The count")
        self._load.stop()
        self._picture()
        self._screen.say(
            "The producer has stopped; a consumer reads all records up to the high watermark."
        )
        return tally(self._load.acknowledged, read_back(self._client, TOPIC))

    # -- Steps of the acts -------------------------------------------------------------------------

    def _kill(self, node: NodeId, role: str) -> float:
        """Kill the node, and return the time of the kill."""
        self._mark_before = self._watermark()
        self._screen.say(
            f"kill -9 of node {node}, {role}, after {self._load.acknowledged:,} acknowledged "
            f"records; the high watermark is {_number(self._mark_before)}."
        )
        self._killed, self._before_kill = time.monotonic(), self._load.acknowledged
        self._cluster.kill(node)
        return self._killed

    def _await_writes(self, killed: float) -> None:
        begun = time.monotonic()
        self._await(lambda: self._load.has_written_since(begun), "an acknowledgement")
        wait = self._load.longest_wait_ms(killed, time.monotonic())
        self._screen.say(f"Writes continue; the longest wait for an acknowledgement was {wait} ms.")
        mark = self._await(self._watermark, "the high watermark")
        if self._mark_before is not None and mark < self._mark_before:
            raise UserError(f"the high watermark moved back from {self._mark_before} to {mark}.")
        self._screen.say(
            f"The high watermark has not moved back: it was {_number(self._mark_before)} "
            f"and is {mark:,}."
        )

    def _return(self, node: NodeId) -> None:
        started = time.monotonic()
        missed = self._load.acknowledged - self._before_kill
        self._screen.say(f"Node {node} restarts; it lacks {missed:,} records.")
        self._cluster.start(node)
        self._await(lambda: node in self._seen.isr, f"the return of broker {node}")
        self._screen.say(
            f"Broker {node} has caught up and is in sync again, "
            f"{time.monotonic() - started:.1f} s after its start."
        )

    def _picture(self) -> None:
        self._screen.show(["", *report(look(self._client, [TOPIC]), None), ""])

    # -- Observing the cluster ---------------------------------------------------------------------

    def _watch(self) -> None:
        until = time.monotonic() + self._act_seconds
        self._await(lambda: time.monotonic() >= until, "the end of an act")

    def _await(self, attempt: Callable[[], T | None], what: str) -> T:
        """Poll until `attempt` returns a true value. Print changes of the partition meanwhile."""
        limit = time.monotonic() + PATIENCE_SECONDS + self._act_seconds
        while True:
            self._look()
            self._load.check()
            if result := attempt():
                return result
            if time.monotonic() > limit:
                raise UserError(f"the demo has timed out waiting for {what}.")
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        (topic,) = self._client.metadata((TOPIC,)).topics
        for one in topic.partitions:
            view = DemoView(one.leader_id, one.leader_epoch, tuple(sorted(one.isr_nodes)))
            before, self._seen = self._seen, view
            if before.leader != NO_NODE:
                self._tell_change(before, view)
        if self._seen.isr and time.monotonic() - self._status_at >= STATUS_SECONDS:
            self._tell_status()
            self._status_at = time.monotonic()

    def _tell_change(self, before: DemoView, now: DemoView) -> None:
        if before.isr != now.isr:
            left = set(before.isr) - set(now.isr)
            why = f"; writes no longer wait for {_ids(tuple(left))}" if left else ""
            self._screen.say(f"In-sync replicas: {_ids(before.isr)} -> {_ids(now.isr)}{why}.")
        if before.leader != now.leader and now.leader != NO_NODE:
            self._screen.say(
                f"Broker {now.leader} leads, in epoch {now.epoch}, "
                f"{_ms_since(self._killed)} ms after the kill."
            )

    def _tell_status(self) -> None:
        self._screen.status(
            f"acknowledged {self._load.acknowledged:,}  watermark {_number(self._watermark())}  "
            f"leader {self._seen.leader}  in sync {_ids(self._seen.isr)}"
        )

    def _watermark(self) -> Offset | None:
        """The high watermark; None if the leader does not report it."""
        (one,) = look(self._client, [TOPIC])
        return one.high_watermark

    def _controller(self, before: NodeId = NO_NODE) -> NodeId | None:
        """The active controller; None if there is none, or if it is still the node `before`."""
        found = quorum_admin.active_controller(self._client)
        return None if found == before else found


def _ms_since(moment: float) -> int:
    return round((time.monotonic() - moment) * 1000)


def _number(offset: Offset | None) -> str:
    return "-" if offset is None else f"{offset:,}"


def _ids(nodes: tuple[NodeId, ...]) -> str:
    return " ".join(map(str, nodes))
