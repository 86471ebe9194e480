"""`tidelog observe`: records the replication events of any Kafka cluster from outside."""

import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

import click
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse

from tidelog.cli import options
from tidelog.cli.kafka_tools.topics import topic_pattern
from tidelog.client import admin
from tidelog.client.administration.config_admin import describe_configs
from tidelog.client.client import Client
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.client.replica_offsets import PartitionOffsets, look
from tidelog.config.resource_type import ResourceType
from tidelog.insight.observation import ClusterObserver, Look, PartitionLook
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset, TopicPartition
from tidelog.model.replication_events import (
    REPLICATION_EVENTS,
    ReplicationEvent,
    encode_event,
    key_of,
)
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Record

SILENCE_SECONDS = 2.0
MIN_ISR = "min.insync.replicas"

Write = Callable[[Iterable[ReplicationEvent], Millis], None]


@click.command("observe")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="Only topics that match this regular expression.")
@click.option(
    "--out",
    metavar="FILE",
    default="-",
    show_default=True,
    help="Append the events to this file as JSON lines; - is standard output.",
)
@click.option(
    "--events-topic",
    metavar="NAME",
    help=f"Write the events to a topic of the cluster instead, such as {REPLICATION_EVENTS}.",
)
@options.interval(5.0)
@click.option("--looks", type=click.IntRange(min=1), help="End after this number of polls.")
def command(
    bootstrap_server: str,
    topic: str | None,
    out: str,
    events_topic: str | None,
    interval: float,
    looks: int | None,
) -> None:
    """Record replication events of a cluster that does not write them itself.

    The command polls the cluster (Metadata, ListOffsets, DescribeLogDirs), derives changes of
    leaders, in-sync sets and lags, and writes them as the events that Tidelog's brokers write.
    `tidelog pipeline health` and `report` read these events. A change that is undone between two
    polls is not recorded.
    """
    observer, number = ClusterObserver(), 0
    with Client(bootstrap_server, SILENCE_SECONDS) as client, _opened(out) as file:
        write = _to_topic(client, events_topic) if events_topic else _to_file(file)
        while True:
            began = time.monotonic()
            try:
                seen = look_at(client, topic)
            except UserError as failure:
                if number == 0:
                    raise
                click.echo(f"tidelog: {failure}", err=True)
            else:
                write(observer.note(seen), seen.at)
            number += 1
            if number == looks:
                return
            time.sleep(max(0.0, interval - (time.monotonic() - began)))


def look_at(client: Client, topic: str | None) -> Look:
    """The current state of the cluster, as its brokers report it."""
    metadata = client.metadata(topics=None)
    # Take the time now, because the next requests take seconds if a broker does not answer.
    at = time.time_ns() // 1_000_000
    pattern = topic_pattern(topic or ".*")
    names = [
        one.name for one in metadata.topics if one.name is not None and pattern.fullmatch(one.name)
    ]
    minimums = _min_isr(client, names)
    behind = _behind(client)
    found = {one.partition: one for one in look(client, names)}
    partitions = {}
    for one in metadata.topics:
        for part in one.partitions if one.name in names else ():
            where = TopicPartition(one.name or "", part.partition_index)
            seen = found.get(where)
            partitions[where] = PartitionLook(
                leader=part.leader_id,
                leader_epoch=part.leader_epoch,
                isr=tuple(sorted(part.isr_nodes)),
                replicas=part.replica_nodes,
                min_isr=minimums.get(where.topic, 1),
                high_watermark=None if seen is None else seen.high_watermark,
                ends={} if seen is None else _ends(seen, behind.get(where, {})),
            )
    # Metadata may still list a broker that has just died.
    brokers = frozenset(one.node_id for one in metadata.brokers if _is_up(one.host, one.port))
    return Look(at, brokers, partitions)


def _is_up(host: str, port: int) -> bool:
    """Whether the port accepts connections. The port of a paused process accepts them as well."""
    try:
        socket.create_connection((host, port), SILENCE_SECONDS).close()
    except OSError:
        return False
    return True


def _ends(seen: PartitionOffsets, behind: dict[NodeId, int]) -> dict[NodeId, Offset]:
    """The log end offset of each replica, as the replica reports it or computed from its lag."""
    ends = {}
    for replica in seen.replicas:
        end = replica.log_end_offset
        if end is None and seen.high_watermark is not None and replica.node in behind:
            end = seen.high_watermark - behind[replica.node]
        if end is not None:
            ends[replica.node] = end
    return ends


def _behind(client: Client) -> dict[TopicPartition, dict[NodeId, int]]:
    """How far each replica is behind the high watermark, as reported by its broker."""
    found: dict[TopicPartition, dict[NodeId, int]] = {}
    for node in client.node_ids():
        try:
            answer = client.ask_node(
                node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse
            )
        except UserError:
            continue  # the broker is dead or silent, or does not support the request
        for directory in answer.results:
            for topic in directory.topics:
                for one in topic.partitions:
                    if not one.is_future_key and one.offset_lag >= 0:
                        where = TopicPartition(topic.name, one.partition_index)
                        found.setdefault(where, {})[node] = one.offset_lag
    return found


def _min_isr(client: Client, topics: list[str]) -> dict[str, int]:
    if not topics:
        return {}
    described = describe_configs(client, ResourceType.TOPIC, topics)
    return {
        topic: int(config.value or 1)
        for topic, configs in described.items()
        for config in configs
        if config.name == MIN_ISR
    }


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if path == "-" else Path(path).open("ab")


def _to_file(file: BinaryIO) -> Write:
    def write(events: Iterable[ReplicationEvent], at: Millis) -> None:
        for event in events:
            file.write(encode_event(event, at, NO_NODE) + b"\n")
        file.flush()

    return write


def _to_topic(client: Client, topic: str) -> Write:
    # With one partition, consumers read the events in the order in which they occurred.
    if topic not in [one.name for one in admin.topics(client)]:
        admin.create_topic(
            client, topic, partitions=1, replication_factor=None, assignment=(), configs={}
        )
    producer = Producer(client, topic, acks=ACKS_ALL, compression="none")

    def write(events: Iterable[ReplicationEvent], at: Millis) -> None:
        records = [Record(key_of(event), encode_event(event, at, NO_NODE), at) for event in events]
        producer.send(records, 0)

    return write
