"""`tidelog consume`: prints the records of a topic."""

import sys
import time

import click

from tidelog.cli import options
from tidelog.cli.output.record_format import Columns, Format
from tidelog.client.client import Client
from tidelog.client.fetcher import Fetcher
from tidelog.client.log_offsets import EARLIEST, LATEST
from tidelog.model.user_error import UserError

LAST_OFFSET = 2**63 - 1


@click.command("consume")
@click.option("--topic", required=True, metavar="NAME", help="The topic.")
@options.bootstrap_server
@click.option("--from-beginning", is_flag=True, help="Start at the oldest record, not at the end.")
@click.option("--partition", type=click.IntRange(min=0), help="Read this partition only.")
@click.option("--offset", metavar="N|earliest|latest", help="Where to start in --partition.")
@click.option("--max-messages", type=click.IntRange(min=1), help="End after this many records.")
@click.option(
    "--timeout-ms", type=click.IntRange(min=0), help="End after this time without a record."
)
@click.option(
    "--property",
    "--formatter-property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="print.key=true, print.offset=true, key.separator=:, ...: those of Kafka's tool.",
)
@click.option(
    "--format",
    "layout",
    metavar="TEXT",
    help=r"A format string instead, as for kcat -f: %t %p %o %k %s %T %h, \n \t.",
)
@options.command_config("--command-config", "--consumer.config")
def command(
    topic: str,
    bootstrap_server: str,
    from_beginning: bool,
    partition: int | None,
    offset: str | None,
    max_messages: int | None,
    timeout_ms: int | None,
    properties: tuple[str, ...],
    layout: str | None,
) -> None:
    """Print records as they arrive, until Ctrl-C, --max-messages or --timeout-ms.

    It reads without a consumer group, so it causes no rebalance. Records of one partition are
    printed in order; records of different partitions may be printed in any order.
    """
    given = dict(options.key_value("--property", one, strip=False) for one in properties)
    show = Columns.of(given) if layout is None else Format(layout, topic)
    start = _start(from_beginning, partition, offset)
    printed = 0
    with Client(bootstrap_server, tell=options.tell) as client:
        fetcher = Fetcher(client, topic)
        fetcher.start(_chosen(client, topic, partition), start)
        out = sys.stdout.buffer
        last = time.monotonic()
        try:
            while max_messages is None or printed < max_messages:
                for fetched in fetcher.poll():
                    out.write(show(fetched))
                    printed += 1
                    last = time.monotonic()
                    if printed == max_messages:
                        break
                out.flush()
                if timeout_ms is not None and time.monotonic() - last >= timeout_ms / 1000:
                    break
        finally:
            click.echo(f"Processed a total of {printed} messages", err=True)


def _start(from_beginning: bool, partition: int | None, offset: str | None) -> int:
    if offset is None:
        return EARLIEST if from_beginning else LATEST
    if partition is None:
        raise click.UsageError("--offset needs --partition")
    if from_beginning:
        raise click.UsageError("give one of --from-beginning and --offset")
    named = {"earliest": EARLIEST, "latest": LATEST}
    if offset in named:
        return named[offset]
    if not offset.isdecimal():
        raise click.UsageError(f"--offset: {offset!r} is not a number, earliest or latest")
    if int(offset) > LAST_OFFSET:
        raise click.UsageError(f"--offset: there is no offset after {LAST_OFFSET}")
    return int(offset)


def _chosen(client: Client, topic: str, partition: int | None) -> list[int]:
    partitions = client.partitions(topic)
    if partition is None:
        return partitions
    if partition not in partitions:
        raise UserError(f"Topic '{topic}' has no partition {partition}.")
    return [partition]
