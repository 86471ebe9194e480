"""InitProducerId (key 22), versions 0-5.

A producer without a transactional id is idempotent. It gets a new id with epoch 0, from the block
that the controller allocated to this broker (KIP-730), even if it sends an old id and epoch. A
producer with a transactional id gets its id and epoch from the transaction coordinator. An id
without an epoch, or an epoch without an id, gets INVALID_REQUEST.
"""

from dataclasses import replace
from datetime import timedelta

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse

from tidelog.api.groups.internal_topics import TRANSACTION_STATE
from tidelog.api.handler import Handling, Request
from tidelog.api.transactions.errors import older_error
from tidelog.coordination.transactions.initializing import KnownProducer
from tidelog.coordination.transactions.requests import InitProducer, ProducerAssigned
from tidelog.coordination.transactions.transaction import NO_PRODUCER_EPOCH
from tidelog.model.effects import ChangeMetadata, Coordinate
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER

_FIRST_WITH_FENCED = 4
_MILLISECOND = timedelta(milliseconds=1)


def init_producer_id(request: Request) -> Handling:
    """Assigns a producer id and epoch."""
    error = _refusal(request)
    if error is not ErrorCode.none:
        return _response(ProducerAssigned(error))
    if request.message.transactional_id is None:
        producer_id = yield from new_producer_id(request)
        if producer_id is None:
            return _response(ProducerAssigned(ErrorCode.coordinator_load_in_progress))
        return _response(ProducerAssigned(ErrorCode.none, producer_id, 0))
    assigned = yield from _assign(request)
    error = older_error(assigned.error, request.version, _FIRST_WITH_FENCED)
    return _response(assigned._replace(error=error))


def _assign(request: Request) -> Handling:
    message = request.message
    expected = None
    if message.producer_id != NO_PRODUCER:
        expected = KnownProducer(message.producer_id, message.producer_epoch)
    asked = InitProducer(
        transactional_id=message.transactional_id,
        timeout_ms=message.transaction_timeout // _MILLISECOND,
        expected=expected,
    )
    assigned = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
    if assigned.needs_producer_id:
        producer_id = yield from new_producer_id(request)
        if producer_id is None:
            return ProducerAssigned(ErrorCode.coordinator_load_in_progress)
        asked = replace(asked, new_producer_id=producer_id)
        assigned = yield Coordinate(asked.transactional_id, asked, TRANSACTION_STATE)
    return assigned


def new_producer_id(request: Request) -> Handling:
    """An unused producer id, or None if the controller cannot allocate a block now.

    As in Kafka, clients then get an error that makes them retry until a block has arrived.
    """
    producer_id = request.producer_ids.take()
    while producer_id is None:
        block = yield ChangeMetadata(_allocation(request), is_brokers_own=True)
        if block.error_code is not ErrorCode.none:
            return None
        request.producer_ids.add(block.producer_id_start, block.producer_id_len)
        producer_id = request.producer_ids.take()
    return producer_id


def _refusal(request: Request) -> ErrorCode:
    message = request.message
    has_id = message.producer_id != NO_PRODUCER
    has_epoch = message.producer_epoch != NO_PRODUCER_EPOCH
    if has_id is not has_epoch or message.transactional_id == "":
        return ErrorCode.invalid_request
    if message.transactional_id is None:
        return ErrorCode.none
    limit = timedelta(milliseconds=request.settings.transaction_max_timeout_ms)
    if not timedelta(0) < message.transaction_timeout <= limit:
        return ErrorCode.invalid_transaction_timeout
    return ErrorCode.none


def _response(assigned: ProducerAssigned) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=timedelta(0),
        error_code=assigned.error,
        producer_id=assigned.producer_id,
        producer_epoch=assigned.epoch,
    )


def _allocation(request: Request) -> AllocateProducerIdsRequest:
    broker = request.image.brokers.get(request.node_id)
    return AllocateProducerIdsRequest(
        broker_id=request.node_id, broker_epoch=-1 if broker is None else broker.epoch
    )
