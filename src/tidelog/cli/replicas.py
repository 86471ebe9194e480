"""`tidelog replicas`: each partition's replicas, how far they are, and who is in sync."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence

import click

from tidelog.cli import admin, options
from tidelog.cli.client import Client
from tidelog.cli.replica_offsets import Partition, Replica, look
from tidelog.cli.table import table
from tidelog.cli.topics import topic_pattern
from tidelog.model.ids import NO_NODE, NodeId, Offset, TopicPartition

SILENCE_SECONDS = 1.0
"""A broker that does not answer for so long is shown without an end offset."""

HEADS = ("PARTITION", "LEADER", "WATERMARK", "REPLICA", "END OFFSET", "LAG", "ISR")
_CLEAR = "\x1b[H\x1b[2J"


@click.command("replicas")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="Only these topics; a regular expression.")
@click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
@click.option(
    "--interval", default=1.0, show_default=True, metavar="SECONDS", help="Between two looks."
)
def command(bootstrap_server: str, topic: str | None, watch: bool, interval: float) -> None:
    """Show every replica: its log end offset, its lag in records, and if it is in the ISR.

    WATERMARK is what consumers may read, as the leader tells it. END OFFSET is asked of each
    replica itself; `-` stands where its broker is down or silent. LAG is what it lacks of the
    leader's log. With --watch, SINCE is how long a replica has been in or out of the ISR, as seen
    from here.
    """
    with Client(bootstrap_server, SILENCE_SECONDS) as client:
        if not watch:
            for line in report(look(client, _names(client, topic)), None):
                click.echo(line)
            return
        memory = Memory()
        while True:
            partitions = look(client, _names(client, topic))
            memory.note(partitions, time.monotonic())
            _show(list(report(partitions, memory)))
            time.sleep(interval)


class Memory:
    """Since when each replica has been in or out of the ISR, as far as it was watched."""

    def __init__(self) -> None:
        self._now = 0.0
        self._since: dict[tuple[TopicPartition, NodeId], tuple[bool, float]] = {}

    def note(self, partitions: Sequence[Partition], now: float) -> None:
        self._now = now
        for one in partitions:
            for replica in one.replicas:
                was, _ = self._since.get((one.partition, replica.node), (None, 0.0))
                if was is not replica.is_in_sync:
                    self._since[one.partition, replica.node] = (replica.is_in_sync, now)

    def age(self, partition: TopicPartition, replica: Replica) -> str:
        return f"{self._now - self._since[partition, replica.node][1]:.0f} s"


def report(partitions: Sequence[Partition], memory: Memory | None) -> Iterator[str]:
    """The table, one line for each replica, the leader's first."""
    rows = [
        _row(one, replica, index == 0, memory)
        for one in partitions
        for index, replica in enumerate(
            sorted(one.replicas, key=lambda replica: replica.node != one.leader)
        )
    ]
    return table(HEADS if memory is None else (*HEADS, "SINCE"), rows)


def _row(
    one: Partition, replica: Replica, is_first: bool, memory: Memory | None
) -> tuple[str, ...]:
    leader = str(one.leader) if one.leader != NO_NODE else "none"
    about = (str(one.partition), leader, _number(one.high_watermark)) if is_first else ("",) * 3
    row = (
        *about,
        str(replica.node),
        _number(replica.log_end_offset),
        _number(one.lag(replica)),
        "in" if replica.is_in_sync else "OUT",
    )
    return row if memory is None else (*row, memory.age(one.partition, replica))


def _number(offset: Offset | None) -> str:
    return "-" if offset is None else str(offset)


def _names(client: Client, topic: str | None) -> list[str]:
    if topic is None:
        return [one.name for one in admin.topics(client) if not one.is_internal]
    pattern = topic_pattern(topic)
    return [one.name for one in admin.topics(client) if pattern.fullmatch(one.name)]


def _show(lines: list[str]) -> None:
    if not sys.stdout.isatty():
        click.echo("\n".join([*lines, ""]))
        return
    room = shutil.get_terminal_size().lines - 1
    if len(lines) > room:
        lines[room - 1 :] = [f"... {len(lines) - room + 1} more; --topic shows fewer"]
    click.echo(_CLEAR + "\n".join(lines))
