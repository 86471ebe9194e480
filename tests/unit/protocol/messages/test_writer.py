"""The writer gives the same bytes as kio, and pauses after each slice of work."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.protocol import Entity
from tests.unit.protocol.entities import EVERY_CLASS, entities, written_by_kio

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.schema import NEUTRAL
from tidelog.protocol.messages.writer import write_steps
from tidelog.protocol.slices import SLICE_FIELDS, Meter, finish


def written(entity: Any) -> bytes:
    out = bytearray()
    finish(write_steps(out, entity, Meter()))
    return bytes(out)


@pytest.mark.parametrize("cls", EVERY_CLASS, ids=lambda cls: f"{cls.__name__}-v{cls.__version__}")
@settings(max_examples=3)
@given(data=st.data())
def test_it_writes_the_bytes_of_kio(cls: type[Entity], data: st.DataObject) -> None:
    entity = data.draw(entities(cls))

    assert written(entity) == written_by_kio(entity)


def listed(partitions: int, topics: int) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(
        partition_index=7, error_code=ErrorCode.none, timestamp=1, offset=2, leader_epoch=3
    )
    topic = ListOffsetsTopicResponse(name="t", partitions=(partition,) * partitions)
    return ListOffsetsResponse(throttle_time=NEUTRAL["timedelta_i32"], topics=(topic,) * topics)


@pytest.mark.parametrize(("partitions", "topics"), [(1, 20_000), (20_000, 1), (150, 150)])
def test_f63_a_long_answer_is_written_in_slices(partitions: int, topics: int) -> None:
    response, out = listed(partitions, topics), bytearray()
    fields = 6 * partitions * topics

    slices = sum(1 for _ in write_steps(out, response, Meter()))

    assert fields // SLICE_FIELDS / 2 <= slices <= 3 * fields // SLICE_FIELDS
    assert bytes(out) == written_by_kio(response)


def test_a_short_answer_is_written_without_a_pause() -> None:
    assert list(write_steps(bytearray(), replace(listed(10, 10)), Meter())) == []
