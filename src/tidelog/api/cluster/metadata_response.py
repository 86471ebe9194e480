"""The Metadata response (key 3), versions 0-13, encoded directly from rows.

Clients often request every topic. The kio library takes 14 ms to encode a hundred topics; this
encoder takes microseconds per topic. A test verifies that the bytes of every version equal kio's.
"""

from collections.abc import Iterable, Sequence
from struct import Struct, pack
from typing import NamedTuple

from tidelog.api.view import NO_AUTHORIZED_OPERATIONS, NodeAddress
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, ZERO_TOPIC_ID, LeaderEpoch, NodeId, TopicId
from tidelog.protocol.slices import Meter, Steps, finish

FIRST_FLEXIBLE = 9

_TOPIC_FIELDS, _PARTITION_FIELDS = 6, 7

_I16 = Struct(">h")
_I32 = Struct(">i")
_PARTITION = Struct(">hii")
_PARTITION_WITH_EPOCH = Struct(">hiii")


class PartitionRow(NamedTuple):
    error: ErrorCode
    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: Sequence[NodeId]
    isr: Sequence[NodeId]
    offline_replicas: Sequence[NodeId]


class TopicRow(NamedTuple):
    error: ErrorCode
    name: str | None
    topic_id: TopicId = ZERO_TOPIC_ID
    is_internal: bool = False
    partitions: Sequence[PartitionRow] = ()
    authorized_operations: int = NO_AUTHORIZED_OPERATIONS


class MetadataRows(NamedTuple):
    brokers: Iterable[NodeAddress]
    cluster_id: str | None
    controller_id: NodeId
    topics: Sequence[TopicRow]
    cluster_authorized_operations: int = NO_AUTHORIZED_OPERATIONS
    error: ErrorCode = ErrorCode.none


NOTHING = MetadataRows(brokers=(), cluster_id=None, controller_id=NO_NODE, topics=())
"""The cluster data in the response to a refused request."""


def encode_metadata(rows: MetadataRows, version: int) -> bytearray:
    """Encode the response body in the given version."""
    return finish(encode_metadata_steps(rows, version))


def encode_metadata_steps(rows: MetadataRows, version: int) -> Steps[bytearray]:
    """Encode the response body in slices."""
    meter = Meter()
    write = _FlexibleWriter() if version >= FIRST_FLEXIBLE else _Writer()
    if version >= 3:
        write.i32(0)  # throttle time
    _write_brokers(write, tuple(rows.brokers), version)
    if version >= 2:
        write.string(rows.cluster_id)
    if version >= 1:
        write.i32(rows.controller_id)
    write.count(len(rows.topics))
    for topic in rows.topics:
        yield from _write_topic(write, topic, version, meter)
    if 8 <= version <= 10:
        write.i32(rows.cluster_authorized_operations)
    if version >= 13:
        write.i16(rows.error)
    write.no_tags()
    return write.out


class _Writer:
    """Kafka's classic encoding: fixed-size lengths, no tagged fields."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out = bytearray()

    def i16(self, value: int) -> None:
        self.out += _I16.pack(value)

    def i32(self, value: int) -> None:
        self.out += _I32.pack(value)

    def boolean(self, value: bool) -> None:
        self.out.append(value)

    def count(self, length: int) -> None:
        self.out += _I32.pack(length)

    def string(self, value: str | None) -> None:
        if value is None:
            self.i16(-1)
            return
        encoded = value.encode()
        self.i16(len(encoded))
        self.out += encoded

    def nodes(self, nodes: Sequence[NodeId]) -> None:
        length = len(nodes)
        self.out += pack(f">{length + 1}i", length, *nodes)

    def no_tags(self) -> None:
        pass


class _FlexibleWriter(_Writer):
    """The flexible encoding of KIP-482: compact lengths and empty tagged fields."""

    __slots__ = ()

    def count(self, length: int) -> None:
        rest = length + 1
        while rest > 127:
            self.out.append(rest & 127 | 128)
            rest >>= 7
        self.out.append(rest)

    def string(self, value: str | None) -> None:
        if value is None:
            self.out.append(0)
            return
        encoded = value.encode()
        self.count(len(encoded))
        self.out += encoded

    def nodes(self, nodes: Sequence[NodeId]) -> None:
        length = len(nodes)
        self.count(length)
        self.out += pack(f">{length}i", *nodes)

    def no_tags(self) -> None:
        self.out.append(0)


def _write_brokers(write: _Writer, brokers: Sequence[NodeAddress], version: int) -> None:
    write.count(len(brokers))
    for broker in brokers:
        write.i32(broker.id)
        write.string(broker.host)
        write.i32(broker.port)
        if version >= 1:
            write.string(broker.rack)
        write.no_tags()


def _write_topic(write: _Writer, topic: TopicRow, version: int, meter: Meter) -> Steps[None]:
    write.i16(topic.error)
    # Only versions from 12 on allow a null name, for a topic requested by an unknown id.
    write.string(topic.name if topic.name is not None or version >= 12 else "")
    if version >= 10:
        write.out += topic.topic_id.bytes
    if version >= 1:
        write.boolean(topic.is_internal)
    write.count(len(topic.partitions))
    for partition in topic.partitions:
        _write_partition(write, partition, version)
        if meter.spend(_PARTITION_FIELDS):
            yield
    if version >= 8:
        write.i32(topic.authorized_operations)
    write.no_tags()
    if meter.spend(_TOPIC_FIELDS):
        yield


def _write_partition(write: _Writer, row: PartitionRow, version: int) -> None:
    error, index, leader, epoch, replicas, isr, offline = row
    if version >= 7:
        write.out += _PARTITION_WITH_EPOCH.pack(error, index, leader, epoch)
    else:
        write.out += _PARTITION.pack(error, index, leader)
    write.nodes(replicas)
    write.nodes(isr)
    if version >= 5:
        write.nodes(offline)
    write.no_tags()
