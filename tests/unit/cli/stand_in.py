"""A broker for tests of the command line, with real sockets and frames.

It is the only broker of its cluster. Each topic of a test has one partition, which this broker
leads. The broker answers the requests of a reader.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

from kio.schema.api_versions.v3 import response as versions
from kio.schema.describe_topic_partitions.v0 import response as described
from kio.schema.fetch.v12 import response as fetched
from kio.schema.list_offsets.v7 import response as listed
from kio.schema.metadata.v12 import response as metadata

from tidelog.client.log_offsets import EARLIEST
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset
from tidelog.protocol.messages.headers import decode_request_header
from tidelog.protocol.messages.messages import encode_response
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import request_class
from tidelog.protocol.records.records import Record, build_batch

ME = 1
HOST = "127.0.0.1"
NO_TIME = timedelta(0)
LENGTH = struct.Struct(">i")
PLACE: dict[str, Any] = {
    "error_code": ErrorCode.none,
    "partition_index": 0,
    "leader_id": ME,
    "replica_nodes": (ME,),
    "isr_nodes": (ME,),
    "offline_replicas": (),
}


@dataclass
class Topic:
    records: list[Record] = field(default_factory=list)
    start: Offset = 0
    """Records before this offset are deleted."""
    id: UUID = field(default_factory=uuid4)

    @property
    def end(self) -> Offset:
        return self.start + len(self.records)


class StandIn:
    def __init__(self, port: int) -> None:
        self.bootstrap = f"{HOST}:{port}"
        self.topics: dict[str, Topic] = {}
        self._port = port
        self._answers = {18: self._versions, 3: self._metadata, 75: self._described}
        self._answers |= {2: self._listed, 1: self._fetched}

    def answer(self, frame: bytes) -> bytes:
        key, version, correlation_id, _, position = decode_request_header(frame)
        request = decode(request_class(key, version), frame, position)
        return encode_response(key, version, correlation_id, self._answers[key](request))

    def _versions(self, _: Any) -> versions.ApiVersionsResponse:
        keys = {18: 3, 3: 12, 75: 0, 2: 7, 1: 12}
        return versions.ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=tuple(
                versions.ApiVersion(api_key=key, min_version=0, max_version=newest)
                for key, newest in keys.items()
            ),
            throttle_time=NO_TIME,
        )

    def _metadata(self, request: Any) -> metadata.MetadataResponse:
        asked = None if request.topics is None else [topic.name for topic in request.topics]
        return metadata.MetadataResponse(
            throttle_time=NO_TIME,
            brokers=(metadata.MetadataResponseBroker(node_id=ME, host=HOST, port=self._port),),
            topics=tuple(
                metadata.MetadataResponseTopic(
                    **self._topic(name),
                    partitions=(metadata.MetadataResponsePartition(**PLACE),)
                    if name in self.topics
                    else (),
                )
                for name in (self.topics if asked is None else asked)
            ),
        )

    def _described(self, request: Any) -> described.DescribeTopicPartitionsResponse:
        asked = [topic.name for topic in request.topics] or self.topics
        place = described.DescribeTopicPartitionsResponsePartition(
            **PLACE, eligible_leader_replicas=(), last_known_elr=()
        )
        return described.DescribeTopicPartitionsResponse(
            throttle_time=NO_TIME,
            topics=tuple(
                described.DescribeTopicPartitionsResponseTopic(
                    **self._topic(name), partitions=(place,) if name in self.topics else ()
                )
                for name in asked
            ),
        )

    def _topic(self, name: str) -> dict[str, Any]:
        if name not in self.topics:
            error = ErrorCode.unknown_topic_or_partition
            return {"error_code": error, "name": name, "topic_id": None}
        return {"error_code": ErrorCode.none, "name": name, "topic_id": self.topics[name].id}

    def _listed(self, request: Any) -> listed.ListOffsetsResponse:
        return listed.ListOffsetsResponse(
            throttle_time=NO_TIME,
            topics=tuple(
                listed.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        listed.ListOffsetsPartitionResponse(
                            partition_index=one.partition_index,
                            error_code=ErrorCode.none,
                            offset=self.topics[topic.name].start
                            if one.timestamp == EARLIEST
                            else self.topics[topic.name].end,
                        )
                        for one in topic.partitions
                    ),
                )
                for topic in request.topics
            ),
        )

    def _fetched(self, request: Any) -> fetched.FetchResponse:
        (asked,) = request.topics
        topic, offset = self.topics[asked.topic], asked.partitions[0].fetch_offset
        is_there = topic.start <= offset <= topic.end
        data = fetched.PartitionData(
            partition_index=0,
            error_code=ErrorCode.none if is_there else ErrorCode.offset_out_of_range,
            high_watermark=topic.end,
            aborted_transactions=None,
            records=build_batch(topic.records[offset - topic.start :], offset)
            if is_there and offset < topic.end
            else b"",
        )
        topics = (fetched.FetchableTopicResponse(topic=asked.topic, partitions=(data,)),)
        return fetched.FetchResponse(
            throttle_time=NO_TIME, error_code=ErrorCode.none, responses=topics
        )


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """A broker that listens until the context ends; the test must close all clients before that."""
    with socket.create_server((HOST, 0)) as listening:
        broker = StandIn(listening.getsockname()[1])
        server = Thread(target=_serve, args=(listening, broker))
        server.start()
        try:
            yield broker
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            server.join()


def _serve(listening: socket.socket, broker: StandIn) -> None:
    """Serve clients one after the other, each until it disconnects."""
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        with client, suppress(ConnectionError), client.makefile("rwb") as stream:
            while length := stream.read(LENGTH.size):
                stream.write(broker.answer(stream.read(*LENGTH.unpack(length))))
                stream.flush()
