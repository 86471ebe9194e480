"""The frames of the load are valid requests, and answers are read correctly."""

import pytest
from tests.unit.bench.chunks import joined

from tidelog.bench.frames import (
    BATCH_BYTES,
    ReusedFrame,
    batch_of,
    check_produced,
    fetch_frame,
    fetched_ends,
    produce_frame,
    records_in_batch,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset
from tidelog.model.user_error import UserError
from tidelog.protocol.fetch.request import decode_request as decode_fetch
from tidelog.protocol.fetch.response import FetchResponse, PartitionFetched
from tidelog.protocol.fetch.response import encode_response as encode_fetched
from tidelog.protocol.messages.headers import RequestHeader, decode_request_header
from tidelog.protocol.produce.request import decode_request as decode_produce
from tidelog.protocol.produce.response import PartitionProduced, ProduceResponse
from tidelog.protocol.produce.response import encode_response as encode_produced
from tidelog.protocol.records.batch import BatchHeader, check

TOPIC = "t"


def received(frame: ReusedFrame, correlation_id: int) -> tuple[memoryview, RequestHeader]:
    whole = memoryview(frame.with_id(correlation_id))
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    return whole[4:], decode_request_header(whole[4:])


def test_a_frame_is_sent_again_with_another_correlation_id() -> None:
    frame = produce_frame("t", 3, batch_of(100, 1))
    for correlation_id in (0, 7):
        body, header = received(frame, correlation_id)
        assert header.correlation_id == correlation_id
        request = decode_produce(header.api_version, body, header.position)
        assert request.acks == -1
        ((topic, ((partition, records),)),) = request.topics
        assert (topic, partition) == ("t", 3)
        assert isinstance(check(memoryview(records or b"")), BatchHeader)


@pytest.mark.parametrize("size", [100, 1_024])
def test_a_large_batch_stays_below_the_limit_of_a_broker(size: int) -> None:
    batch = batch_of(size, records_in_batch(size))
    assert 0.9 * BATCH_BYTES < len(batch) < 1_048_588


def test_a_fetch_asks_for_each_partition_from_its_position() -> None:
    body, header = received(fetch_frame("t", {2: 5, 0: 9}), 1)
    request = decode_fetch(header.api_version, body, header.position)
    ((_, partitions),) = request.topics
    assert [(one.partition, one.fetch_offset) for one in partitions] == [(2, 5), (0, 9)]


@pytest.mark.parametrize(
    ("error", "is_refused"), [(ErrorCode.none, False), (ErrorCode.not_leader_or_follower, True)]
)
def test_a_refused_produce_stops_the_load(error: ErrorCode, is_refused: bool) -> None:
    response = ProduceResponse([(TOPIC, [PartitionProduced(0, error)])])
    answer = encode_produced(9, 1, response)[4:]
    if not is_refused:
        return check_produced(answer)
    with pytest.raises(UserError, match="NOT_LEADER_OR_FOLLOWER"):
        check_produced(answer)
    return None


def fetched(*partitions: PartitionFetched) -> memoryview:
    return memoryview(joined(encode_fetched(12, 1, FetchResponse([(TOPIC, partitions)]))))[4:]


def test_the_ends_of_fetched_records_are_read_from_the_batches() -> None:
    batch = batch_of(100, 5)
    answer = fetched(
        PartitionFetched(0, ErrorCode.none, Offset(5), records=batch),
        PartitionFetched(1, ErrorCode.none, Offset(0), records=b""),
    )
    assert list(fetched_ends(answer)) == [(0, 5, len(batch))]


def test_a_refused_fetch_stops_the_load() -> None:
    with pytest.raises(UserError, match="OFFSET_OUT_OF_RANGE"):
        list(fetched_ends(fetched(PartitionFetched(0, ErrorCode.offset_out_of_range))))
