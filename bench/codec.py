"""Measure the hand-tuned codecs, and compare them with kio's codecs for the same message.

Run with `python bench/codec.py`. Times are CPU time, the best of several rounds. kio decodes in
native code, but copies the records and accepts any length. It encodes in Python.
"""

from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from time import process_time
from timeit import repeat
from typing import Any, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v17 import request as kio_fetch_request
from kio.schema.fetch.v17 import response as kio_fetch_response
from kio.schema.produce.v12 import request as kio_produce_request
from kio.schema.produce.v12 import response as kio_produce_response
from kio.serial import entity_reader, entity_writer

from tidelog.model.disk import File, FileSlice
from tidelog.protocol import fetch, produce
from tidelog.protocol.fetch import FetchPartition, PartitionFetched
from tidelog.protocol.framing import FrameSplitter
from tidelog.protocol.messages.messages import decode_request_header, encode_request
from tidelog.protocol.produce import PartitionProduced

RECORDS = bytes(16 * 1024)
PARTITIONS = range(6)
TOPIC_ID = UUID(int=12345)
PRODUCE, FETCH = 12, 17

Case = tuple[str, Callable[[], Any], Callable[[], Any] | None]


def microseconds(call: Callable[[], Any]) -> float:
    rounds = repeat(call, number=2000, repeat=25, timer=process_time)
    return min(rounds) / 2000 * 1e6


def written(entity: Any) -> bytes:
    out = BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def produce_request() -> list[Case]:
    entity = kio_produce_request.ProduceRequest(
        acks=-1,
        timeout=timedelta(seconds=30),
        topic_data=(
            kio_produce_request.TopicProduceData(
                name="orders",
                partition_data=(
                    kio_produce_request.PartitionProduceData(index=0, records=RECORDS),
                ),
            ),
        ),
    )
    frame = memoryview(bytearray(encode_request(entity, PRODUCE, 1, "client")))[4:]
    position = decode_request_header(frame).position
    readonly = frame.toreadonly()
    read = entity_reader(kio_produce_request.ProduceRequest)
    wire = memoryview(bytearray(len(frame).to_bytes(4, "big") + frame))
    splitter = FrameSplitter(1 << 20)
    return [
        ("split one frame", lambda: splitter.feed(wire), None),
        ("decode request header", lambda: decode_request_header(frame), None),
        (
            "decode produce request, 1 partition",
            lambda: produce.decode_request(PRODUCE, frame, position),
            lambda: read(readonly, position),
        ),
    ]


def produce_response() -> list[Case]:
    entity = kio_produce_response.ProduceResponse(
        responses=(
            kio_produce_response.TopicProduceResponse(
                name="orders",
                partition_responses=(
                    kio_produce_response.PartitionProduceResponse(
                        index=0,
                        error_code=ErrorCode.none,
                        base_offset=100,
                        log_append_time=None,
                        log_start_offset=0,
                        record_errors=(),
                        error_message=None,
                    ),
                ),
            ),
        ),
        throttle_time=timedelta(),
    )

    def ours() -> bytearray:
        partition = PartitionProduced(0, ErrorCode.none, 100, -1, 0)
        return produce.encode_response(
            PRODUCE, 1, produce.ProduceResponse([("orders", [partition])])
        )

    return [("encode produce response, 1 partition", ours, lambda: written(entity))]


def fetch_request() -> list[Case]:
    partitions = [FetchPartition(index, 3, 1000, -1, -1, 1 << 20) for index in PARTITIONS]
    request = fetch.FetchRequest(500, 1, 50 << 20, topics=[(TOPIC_ID, partitions)])
    frame = memoryview(fetch.encode_request(FETCH, 1, "client", request))[4:]
    position = decode_request_header(frame).position
    readonly = frame.toreadonly()
    read = entity_reader(kio_fetch_request.FetchRequest)
    return [
        (
            "decode fetch request, 6 partitions",
            lambda: fetch.decode_request(FETCH, frame, position),
            lambda: read(readonly, position),
        )
    ]


def fetch_response() -> list[Case]:
    entity = kio_fetch_response.FetchResponse(
        throttle_time=timedelta(),
        error_code=ErrorCode.none,
        responses=(
            kio_fetch_response.FetchableTopicResponse(
                topic_id=TOPIC_ID,
                partitions=tuple(
                    kio_fetch_response.PartitionData(
                        partition_index=index,
                        error_code=ErrorCode.none,
                        high_watermark=1000,
                        last_stable_offset=1000,
                        log_start_offset=0,
                        aborted_transactions=None,
                        records=RECORDS,
                    )
                    for index in PARTITIONS
                ),
            ),
        ),
    )
    file = cast(File, object())  # this benchmark never reads from the file
    partitions = [
        PartitionFetched(index, ErrorCode.none, 1000, 1000, 0, FileSlice(file, 0, 16 * 1024))
        for index in PARTITIONS
    ]
    response = fetch.FetchResponse([(TOPIC_ID, partitions)])
    return [
        (
            "encode fetch response, 6 partitions",
            lambda: fetch.encode_response(FETCH, 1, response),
            lambda: written(entity),
        )
    ]


def main() -> None:
    print(f"{'':38}{'ours':>9}{'kio':>9}{'ratio':>8}")
    cases = produce_request() + produce_response() + fetch_request() + fetch_response()
    for name, ours, kios in cases:
        own = microseconds(ours)
        if kios is None:
            print(f"{name:38}{own:6.2f} us")
        else:
            other = microseconds(kios)
            print(f"{name:38}{own:6.2f} us{other:6.2f} us{other / own:7.1f}x")


if __name__ == "__main__":
    main()
