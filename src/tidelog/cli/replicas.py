"""`tidelog replicas`: shows the offset, the lag and the sync state of each replica."""

import time
from collections.abc import Iterator, Sequence

import click

from tidelog.cli import options
from tidelog.cli.kafka_tools.topics import topic_pattern
from tidelog.cli.output.table import table
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.replica_offsets import PartitionOffsets, look
from tidelog.insight.event_log import EventLog
from tidelog.insight.lag_time import LookTime
from tidelog.insight.replica_table import HEADS, TIMED_HEADS, Memory, ReplicaRow, rows, timed_cells
from tidelog.model.ids import Millis
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.model.user_error import UserError

SILENCE_SECONDS = 1.0
"""If a broker does not answer within this time, it is shown without an end offset."""


@click.command("replicas")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="Only topics that match this regular expression.")
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C.")
@options.interval(1.0)
def command(bootstrap_server: str, topic: str | None, watch: bool, interval: float) -> None:
    """Show every replica: its log end offset, its lag, and since when it is in or out of the ISR.

    WATERMARK is the high watermark of the leader: consumers may read up to it. END OFFSET comes
    from each replica itself; `-` means that its broker is down or does not answer. LAG is the
    number of records that the replica lacks. BEHIND is for how long it has lagged: `< 3 s` if it
    had no lag 3 s ago, `> 3 s` if the lag began before the first observation. SINCE is how long it
    has been in or out of the ISR, and why it left. BEHIND and SINCE come from the last 20,000
    replication events of the cluster, and with --watch from earlier observations; without either
    they are `-`. `> 20 min` in SINCE means: longer than the events go back.
    """
    with Client(bootstrap_server, SILENCE_SECONDS) as client:
        watched = Watched(client, topic)
        if watch:
            from tidelog.cli.output.replica_screen import show  # slow to import

            show(watched.look, interval)
        else:
            for line in timed_report(watched.look()):
                click.echo(line)


class Watched:
    """The rows to show, read again at every refresh."""

    def __init__(self, client: Client, topic: str | None) -> None:
        self._client = client
        self._topic = topic
        self._events = EventLog(client)
        self._memory = Memory(self._events.history)

    def look(self) -> list[ReplicaRow]:
        began = _now()
        partitions = look(self._client, _names(self._client, self._topic))
        looked = LookTime(began, _now())
        self._events.catch_up()
        self._memory.note(partitions, looked)
        return list(rows(partitions, self._memory))


def report(partitions: Sequence[PartitionOffsets], memory: Memory | None) -> Iterator[str]:
    """The table: one line per replica, the leader first. With `memory`, it also has times."""
    shown = list(rows(partitions, memory))
    return table(HEADS, [row.cells for row in shown]) if memory is None else timed_report(shown)


def timed_report(shown: Sequence[ReplicaRow]) -> Iterator[str]:
    return table(TIMED_HEADS, [timed_cells(row) for row in shown])


def _now() -> Millis:
    return time.time_ns() // 1_000_000


def _names(client: Client, topic: str | None) -> list[str]:
    if topic is None:
        own = (one.name for one in admin.topics(client) if not one.is_internal)
        return [name for name in own if name != REPLICATION_EVENTS]
    pattern = topic_pattern(topic)
    names = [one.name for one in admin.topics(client) if pattern.fullmatch(one.name)]
    if not names:
        raise UserError(f"Topic '{topic}' does not exist as expected.")
    return names
