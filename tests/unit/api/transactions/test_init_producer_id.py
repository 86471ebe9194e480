"""InitProducerId, whose ids come from blocks of the controller, or from a coordinator."""

from datetime import timedelta

import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.api.transactions.init_producer_id import init_producer_id
from tidelog.coordination.transactions.initializing import KnownProducer
from tidelog.coordination.transactions.requests import InitProducer, ProducerAssigned
from tidelog.model.effects import ChangeMetadata, Coordinate
from tidelog.model.errors import ErrorCode

MINUTE = timedelta(minutes=1)


def block(start: int, length: int = 1000, error: ErrorCode = ErrorCode.none):
    return AllocateProducerIdsResponse(
        throttle_time=timedelta(0),
        error_code=error,
        producer_id_start=start,
        producer_id_len=length,
    )


def init(blocks: ProducerIdBlocks, version: int = 5, **fields):
    message = ask(22, **{"transactional_id": None, "transaction_timeout": MINUTE, **fields})
    return init_producer_id(request(message, version, producer_ids=blocks))


def test_the_first_id_needs_a_block():
    effects = Effects(block(3000))

    response = effects.drive(init(ProducerIdBlocks()))

    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 3000, 0)
    assert effects.asked == [
        ChangeMetadata(AllocateProducerIdsRequest(broker_id=1, broker_epoch=101), True)
    ]


def test_no_id_leaves_twice():
    blocks = ProducerIdBlocks()
    first = [drive(init(blocks), block(0, 2)).producer_id, drive(init(blocks)).producer_id]
    second = drive(init(blocks), block(7000)).producer_id

    assert [*first, second] == [0, 1, 7000]


def test_two_producers_that_wait_for_a_block_both_get_theirs():
    blocks = ProducerIdBlocks()
    one, other = init(blocks), init(blocks)
    one.send(None)
    other.send(None)

    with pytest.raises(StopIteration) as first:
        one.send(block(0, 2))
    with pytest.raises(StopIteration) as second:
        other.send(block(1000, 2))

    assert (first.value.value.producer_id, second.value.value.producer_id) == (0, 1)
    assert [blocks.take() for _ in range(3)] == [1000, 1001, None]


def test_a_block_that_cannot_be_had_yet():
    response = drive(init(ProducerIdBlocks()), block(0, 0, ErrorCode.stale_broker_epoch))

    assert response.error_code is ErrorCode.coordinator_load_in_progress
    assert (response.producer_id, response.producer_epoch) == (-1, -1)


def test_an_old_id_and_epoch_are_replaced():
    response = drive(init(ProducerIdBlocks(), producer_id=5, producer_epoch=1), block(9))

    assert (response.producer_id, response.producer_epoch) == (9, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.invalid_request),
        ({"producer_epoch": 5}, ErrorCode.invalid_request),
        ({"transactional_id": ""}, ErrorCode.invalid_request),
        (
            {"transactional_id": "t", "transaction_timeout": timedelta(days=1)},
            ErrorCode.invalid_transaction_timeout,
        ),
        (
            {"transactional_id": "t", "transaction_timeout": timedelta(0)},
            ErrorCode.invalid_transaction_timeout,
        ),
    ],
)
def test_refusals(fields, error: ErrorCode):
    response = drive(init(ProducerIdBlocks(), **fields))

    assert (response.error_code, response.producer_id) == (error, -1)


STATE = "__transaction_state"


def test_a_coordinator_assigns_the_epoch_of_a_transactional_id():
    effects = Effects(ProducerAssigned(ErrorCode.none, 7000, 4))
    blocks = ProducerIdBlocks()

    response = effects.drive(init(blocks, transactional_id="t", producer_id=7000, producer_epoch=3))

    asked = InitProducer(transactional_id="t", timeout_ms=60_000, expected=KnownProducer(7000, 3))
    assert effects.asked == [Coordinate("t", asked, STATE)]
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 7000, 4)


def test_a_new_transactional_id_gets_a_producer_id_of_a_block():
    needed = ProducerAssigned(ErrorCode.none, needs_producer_id=True)
    effects = Effects(needed, block(3000), ProducerAssigned(ErrorCode.none, 3000, 0))

    response = effects.drive(init(ProducerIdBlocks(), transactional_id="t"))

    asked = InitProducer(transactional_id="t", timeout_ms=60_000, new_producer_id=3000)
    assert effects.asked[-1] == Coordinate("t", asked, STATE)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 3000, 0)


def test_a_transactional_id_without_a_block():
    needed = ProducerAssigned(ErrorCode.none, needs_producer_id=True)
    failed = block(0, 0, ErrorCode.stale_broker_epoch)

    response = drive(init(ProducerIdBlocks(), transactional_id="t"), needed, failed)

    assert response.error_code is ErrorCode.coordinator_load_in_progress


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.invalid_producer_epoch), (4, ErrorCode.producer_fenced)],
)
def test_older_clients_learn_of_a_fence_by_another_error(version: int, error: ErrorCode):
    fenced = ProducerAssigned(ErrorCode.producer_fenced)

    response = drive(init(ProducerIdBlocks(), version, transactional_id="t"), fenced)

    assert (response.error_code, response.producer_id) == (error, -1)
