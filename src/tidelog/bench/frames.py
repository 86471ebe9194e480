"""Request frames that are built once and sent many times, so that the load costs little CPU.

Only the correlation id differs between two uses of a frame. A batch without a producer id may be
sent again and again: a broker assigns new offsets each time.
"""

import random
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from struct import Struct

from kio.schema.fetch.v12 import request as fetch
from kio.schema.produce.v9 import request as produce
from kio.static.protocol import RequestPayload

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset
from tidelog.model.user_error import UserError
from tidelog.protocol.fetch.response import decode_response as decode_fetched
from tidelog.protocol.messages.messages import encode_request
from tidelog.protocol.produce.response import decode_response as decode_produced
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch

ACKS_ALL = -1
TIMEOUT = timedelta(seconds=30)
BATCH_BYTES = 1_000_000
FETCH_BYTES = 8 * 2**20
FETCH_WAIT = timedelta(milliseconds=500)

_CLIENT_ID = "tidelog-bench"
_CORRELATION_ID = Struct(">i")
_CORRELATION_AT = 8
"""The place of the correlation id: after the length, the API key and the version."""


class ReusedFrame:
    """A frame in which only the correlation id changes."""

    def __init__(self, request: RequestPayload) -> None:
        self._bytes = bytearray(encode_request(request, request.__version__, 0, _CLIENT_ID))

    def with_id(self, correlation_id: int) -> bytearray:
        _CORRELATION_ID.pack_into(self._bytes, _CORRELATION_AT, correlation_id)
        return self._bytes


def payload(size: int) -> bytes:
    """Bytes that do not compress, the same in each run."""
    return random.Random(0).randbytes(size)


def records_in_batch(size: int) -> int:
    """How many records of this size a large batch has."""
    return max(1, BATCH_BYTES // (size + 12))


def batch_of(size: int, records: int) -> bytes:
    now = int(time.time() * 1000)
    return build_batch([Record(None, payload(size), now)] * records)


def produce_request(topic: str, partition: int, batch: bytes) -> produce.ProduceRequest:
    """A Produce with acks=all."""
    data = produce.PartitionProduceData(index=partition, records=batch)
    return produce.ProduceRequest(
        acks=ACKS_ALL,
        timeout=TIMEOUT,
        topic_data=(produce.TopicProduceData(name=topic, partition_data=(data,)),),
    )


def produce_frame(topic: str, partition: int, batch: bytes) -> ReusedFrame:
    return ReusedFrame(produce_request(topic, partition, batch))


def check_produced(answer: Buffer) -> None:
    """Raise an error if the broker refused the batch."""
    ((_, (produced,)),) = decode_produced(produce.ProduceRequest.__version__, answer).topics
    if produced.error is not ErrorCode.none:
        raise UserError(f"a broker refused records: {produced.error.name.upper()}.")


def fetch_frame(topic: str, positions: Mapping[int, Offset]) -> ReusedFrame:
    """A Fetch of a consumer, without a session."""
    partitions = tuple(
        fetch.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
        )
        for partition, offset in positions.items()
    )
    return ReusedFrame(
        fetch.FetchRequest(
            max_wait=FETCH_WAIT,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=(fetch.FetchTopic(topic=topic, partitions=partitions),),
            forgotten_topics_data=(),
        )
    )


def fetched_ends(answer: memoryview) -> Iterable[tuple[int, Offset, int]]:
    """For each partition with records: its number, the next offset, and the bytes of records."""
    for _, partitions in decode_fetched(fetch.FetchRequest.__version__, answer).topics:
        for one in partitions:
            if one.error is not ErrorCode.none:
                raise UserError(f"a broker refused a fetch: {one.error.name.upper()}.")
            assert not isinstance(one.records, FileSlice), "a decoded response has no files"
            end, size = None, 0
            for at, header in iterate(one.records or b""):
                end, size = header.next_offset, at + header.size
            if end is not None:
                yield one.partition, end, size
