"""`tidelog perf`: measures producing and consuming, as Kafka's perf-test tools do."""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from tidelog.cli import options
from tidelog.cli.kafka_tools.topics import topic_pattern
from tidelog.cli.output import perf_report
from tidelog.cli.output.perf_report import ProducerStats
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.fetcher import Fetcher
from tidelog.client.log_offsets import EARLIEST, LATEST
from tidelog.client.producer import ACKS_ALL, BATCH_BYTES, Producer
from tidelog.model.user_error import UserError
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import Record

ACKS = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1}
LETTERS = bytes(65 + number % 26 for number in range(256))
FETCH_BYTES = 1024 * 1024

F = TypeVar("F", bound=Callable[..., Any])


@click.group("perf")
def command() -> None:
    """Measure producing and consuming, with the flags and the output of Kafka's perf-test tools."""


def report_option(flag: str) -> Callable[[F], F]:
    return click.option(
        flag,
        type=click.IntRange(min=1),
        default=perf_report.REPORT_MS,
        show_default=True,
        metavar="MS",
        help="The time between two lines of progress.",
    )


@command.command("produce")
@click.option("--topic", required=True, metavar="NAME", help="The topic.")
@options.bootstrap_server
@click.option(
    "--num-records", required=True, type=click.IntRange(min=1), help="The number of records."
)
@click.option("--record-size", type=click.IntRange(min=1), help="The size of each record.")
@click.option("--payload-file", metavar="FILE", help="Send random lines of this file instead.")
@click.option(
    "--payload-delimiter", default="\\n", show_default=True, help="Between the payloads of a file."
)
@click.option("--payload-monotonic", is_flag=True, help="Send 0, 1, 2 and so on instead.")
@click.option(
    "--throughput", type=float, default=-1, show_default=True, help="Records per second; -1: all."
)
@click.option(
    "--producer-props",
    "--command-property",
    "properties",
    multiple=True,
    metavar="K=V...",
    help="acks, compression.type, batch.size, bootstrap.servers.",
)
@click.argument("more", nargs=-1, metavar="[K=V]...")
@click.option(
    "--warmup-records", type=click.IntRange(min=0), default=0, help="Records to leave out."
)
@report_option("--reporting-interval")
@options.command_config("--command-config", "--producer.config")
def produce(bootstrap_server: str, topic: str, num_records: int, **given: Any) -> None:
    """Write records and print their number, throughput and latency.

    The producer waits for each batch before it sends the next one, so it measures latency well, and
    throughput only of one batch at a time. A batch has 512 KiB unless batch.size is given.
    """
    payloads = _payloads(given)
    if given["warmup_records"] >= num_records:
        raise click.UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in "
            "the test, --num-records"
        )
    properties = producer_properties([*given["properties"], *given["more"]])
    server = properties.get("bootstrap.servers", bootstrap_server)
    with Client(server, tell=options.tell) as client:
        producer = Producer(
            client,
            topic,
            acks=ACKS[properties.get("acks", "all")],
            compression=properties.get("compression.type", "none"),
        )
        _produce(producer, payloads, num_records, int(properties["batch.size"]), given)


def _payloads(given: dict[str, Any]) -> Iterator[bytes]:
    kinds = (given["record_size"], given["payload_file"], given["payload_monotonic"])
    if sum(map(options.is_given, kinds)) != 1:
        raise click.UsageError(
            "exactly one of --record-size, --payload-file and --payload-monotonic is needed"
        )
    dice = random.Random(0)
    if given["record_size"] is not None:
        return _random_payloads(dice, given["record_size"])
    if given["payload_monotonic"]:
        return (b"%d" % number for number in itertools.count())
    return _file_payloads(dice, given["payload_file"], given["payload_delimiter"])


def _random_payloads(dice: random.Random, size: int) -> Iterator[bytes]:
    while True:
        yield dice.randbytes(size).translate(LETTERS)


def _file_payloads(dice: random.Random, path: str, delimiter: str) -> Iterator[bytes]:
    click.echo(f"Reading payloads from: {Path(path).absolute()}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        text = ""
    separator = "\n" if delimiter in ("\\n", "") else delimiter
    payloads = [one.encode() for one in text.split(separator) if one]
    if not text or not payloads:
        raise UserError("File does not exist or empty file provided.")
    click.echo(f"Number of messages read: {len(payloads)}")
    return (dice.choice(payloads) for _ in itertools.count())


def producer_properties(words: list[str]) -> dict[str, str]:
    """The properties of the producer. Properties without an effect are reported."""
    properties = {"batch.size": str(BATCH_BYTES)}
    known = {
        "acks": ACKS,
        "compression.type": CODECS,
        "batch.size": None,
        "bootstrap.servers": None,
    }
    for word in words:
        key, value = options.key_value("--producer-props", word)
        if key not in known:
            options.tell(f"--producer-props: {key} has no effect here.")
            continue
        allowed = known[key]
        if allowed is not None and value not in allowed:
            raise click.UsageError(f"{key}: {value!r} is not one of {', '.join(allowed)}")
        if key == "batch.size" and not (value.isdecimal() and 0 < int(value) <= BATCH_BYTES):
            raise click.UsageError(f"batch.size: {value!r} is not a size up to {BATCH_BYTES}")
        properties[key] = value
    return properties


def _produce(
    producer: Producer, payloads: Iterator[bytes], count: int, batch: int, given: dict[str, Any]
) -> None:
    warmup = given["warmup_records"]
    if warmup:
        click.echo(
            f"Warmup first {warmup} records. Steady state results will print after the complete "
            "test summary."
        )
    stats = ProducerStats(_now(), given["reporting_interval"])
    steady: ProducerStats | None = None
    sent = 0
    while sent < count:
        if warmup and sent >= warmup and steady is None:
            steady = ProducerStats(_now(), given["reporting_interval"], " steady state")
        limit = (warmup if sent < warmup else count) - sent
        records, size = _batch(payloads, min(limit, _due(stats, sent, given["throughput"])), batch)
        producer.send(records, None)
        now = _now()
        latencies = [now - record.timestamp for record in records]
        line = stats.sent(latencies, size, now)
        if steady is not None:
            line = steady.sent(latencies, size, now)
        if line is not None:
            click.echo(line)
        sent += len(records)
    for one in filter(None, (stats, steady)):
        click.echo(one.total(_now()))


def _due(stats: ProducerStats, sent: int, throughput: float) -> int:
    """How many records may be sent now; waits until it is at least one."""
    if throughput <= 0:
        return 2**31
    while True:
        due = int((_now() - stats.started) * throughput / 1000) + 1 - sent
        if due > 0:
            return due
        time.sleep((1 - due) / throughput)


def _batch(payloads: Iterator[bytes], most: int, most_bytes: int) -> tuple[list[Record], int]:
    records: list[Record] = []
    size = 0
    while len(records) < most and (not records or size < most_bytes):
        payload = next(payloads)
        records.append(Record(None, payload, _now(), ()))
        size += len(payload)
    return records, size


def _now() -> int:
    return time.time_ns() // 1_000_000


@command.command("consume")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="The topic.")
@click.option("--include", metavar="REGEX", help="Read all topics that match instead.")
@click.option(
    "--num-records",
    "--messages",
    "count",
    required=True,
    type=click.IntRange(min=1),
    help="The number of records.",
)
@click.option("--from-latest", is_flag=True, help="Start at the end of the log, not at its start.")
@click.option(
    "--timeout",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="End after this time without a record.",
)
@click.option(
    "--fetch-size", type=click.IntRange(min=1), default=FETCH_BYTES, help="Bytes per partition."
)
@click.option("--show-detailed-stats", is_flag=True, help="Print a line for each interval.")
@report_option("--reporting-interval")
@click.option("--hide-header", is_flag=True, help="Leave the header out.")
@click.option(
    "--group", expose_value=False, help="Accepted, and ignored: it reads without a group."
)
@options.command_config("--command-config", "--consumer.config")
def consume(
    bootstrap_server: str, topic: str | None, include: str | None, count: int, **given: Any
) -> None:
    """Read records and print their number and the throughput. It reads without a group."""
    if (topic is None) == (include is None):
        raise click.UsageError("exactly one of --topic and --include is needed")
    with Client(bootstrap_server, tell=options.tell) as client:
        names = [topic] if topic is not None else _matching(client, include or "")
        if not given["hide_header"]:
            click.echo(perf_report.consumer_head(detailed=given["show_detailed_stats"]))
        started = _now()
        fetchers = []
        for name in names:
            fetcher = Fetcher(client, name, partition_bytes=given["fetch_size"])
            fetcher.start(client.partitions(name), LATEST if given["from_latest"] else EARLIEST)
            fetchers.append(fetcher)
        size, read = _consume(fetchers, count, given)
    if read < count:
        click.echo(
            "WARNING: Exiting before consuming the expected number of messages: timeout "
            f"({given['timeout']} ms) exceeded. You can use the --timeout option to increase the "
            "timeout."
        )
    if not given["show_detailed_stats"]:
        click.echo(perf_report.consumer_total(started, _now(), size, read))


def _matching(client: Client, include: str) -> list[str]:
    pattern = topic_pattern(include)
    found = [one.name for one in admin.topics(client) if pattern.fullmatch(one.name)]
    if not found:
        raise UserError(f"no topic matches {include!r}.")
    return found


def _consume(fetchers: list[Fetcher], count: int, given: dict[str, Any]) -> tuple[int, int]:
    """Read until there are enough records or none arrive; returns their size and number."""
    size = read = 0
    last_record = last_report = _now()
    last_size = last_read = 0
    while read < count and _now() - last_record <= given["timeout"]:
        for fetcher in fetchers:
            for fetched in fetcher.poll():
                read += 1
                size += len(fetched.record.key or b"") + len(fetched.record.value or b"")
                last_record = _now()
                if read >= count:
                    break
        now = _now()
        if now - last_report >= given["reporting_interval"] and read > last_read:
            if given["show_detailed_stats"]:
                new = {"new_size": size - last_size, "new_count": read - last_read}
                click.echo(perf_report.consumer_interval(last_report, now, size, read, **new))
            last_report, last_size, last_read = now, size, read
    return size, read
