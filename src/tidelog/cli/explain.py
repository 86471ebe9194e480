"""`tidelog explain`: reports why a partition is unhealthy, and what would repair it."""

import re
import shutil
from collections.abc import Iterable, Sequence

import click

from tidelog.cli import options
from tidelog.cli.help.suggestions import did_you_mean
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.insight import wording
from tidelog.insight.explanation import explain, summary
from tidelog.insight.fact_gathering import gather
from tidelog.model.user_error import UserError

SILENCE_SECONDS = 1.0
"""If a broker does not answer within this time, its offsets are left out."""
WIDTH = 100
MOST = 10
"""The maximum number of partitions of a topic that are explained one by one."""


@click.command("explain")
@options.bootstrap_server
@click.argument("subject", metavar="TOPIC-PARTITION")
def command(bootstrap_server: str, subject: str) -> None:
    """Explain the state of a partition: its leader, its in-sync replicas, which replica left and
    why, what this means for producers, and what would repair it.

    With TOPIC alone it explains the unhealthy partitions of the topic. Times and reasons come from
    the last 20,000 replication events, which `tidelog up` turns on. Everything else works without
    them.
    """
    with Client(bootstrap_server, SILENCE_SECONDS) as client:
        topic, partition = find(subject, [one.name for one in admin.topics(client)])
        facts = gather(client, topic, partition)
    if partition is not None:
        show(explain(facts[0]))
        return
    unhealthy = [one for one in facts if not one.is_healthy]
    click.echo(summary(topic, facts))
    for one in unhealthy[:MOST]:
        click.echo()
        show(explain(one))
    if len(unhealthy) > MOST:
        click.echo(f"\nand {len(unhealthy) - MOST} more; `explain {topic}-N` explains one of them.")


def show(lines: Iterable[str]) -> None:
    """Print lines wrapped to the terminal, at most `WIDTH` wide."""
    width = min(shutil.get_terminal_size().columns, WIDTH)
    for line in lines:
        click.echo(wording.wrapped(line, width))


def find(subject: str, topics: Sequence[str]) -> tuple[str, int | None]:
    """The topic, and the partition if one is named.

    `a-1` is the topic with this name if it exists, and otherwise partition 1 of topic `a`.
    """
    if subject in topics:
        return subject, None
    named = re.fullmatch(r"(.+)-(\d+)", subject)
    if named is not None and named[1] in topics:
        return named[1], int(named[2])
    near = did_you_mean(subject if named is None else named[1], topics)
    raise UserError(f"there is no topic or partition '{subject}'{near}")
