"""Writes a batch whose checksum is right, and whose records cannot be decompressed."""

import struct
from datetime import timedelta

from crc32c import crc32c
from kio.schema.produce.v9 import request as produce
from kio.schema.produce.v9.response import ProduceResponse

from tidelog.client.client import Client
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import Record, build_batch

HEADER_BYTES, GZIP_HEADER_BYTES = 61, 10
CRC_AT, CHECKED_FROM = 17, 21


def garbled(value: bytes = b"lost") -> bytes:
    whole = bytearray(build_batch([Record(None, value, 1_700_000_000_000)], compression="gzip"))
    for place in range(HEADER_BYTES + GZIP_HEADER_BYTES, len(whole)):
        whole[place] ^= 0xFF
    struct.pack_into(">I", whole, CRC_AT, crc32c(bytes(whole[CHECKED_FROM:])))
    return bytes(whole)


def write(bootstrap: str, topic: str, partition: int) -> None:
    """Write the batch. A broker that does not open batches accepts it."""
    of_partition = produce.PartitionProduceData(index=partition, records=garbled())
    request = produce.ProduceRequest(
        acks=-1,
        timeout=timedelta(seconds=30),
        topic_data=(produce.TopicProduceData(name=topic, partition_data=(of_partition,)),),
    )
    with Client(bootstrap) as client:
        where = TopicPartition(topic, partition)
        found = client.until_led(topic, lambda: client.ask_leader(where, request, ProduceResponse))
        (answered,) = found.responses
        (answer,) = answered.partition_responses
        assert answer.error_code is ErrorCode.none, answer
