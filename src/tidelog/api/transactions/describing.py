"""DescribeTransactions (key 65), version 0, and ListTransactions (66), versions 0-2.

ListTransactions returns the transactional ids of all coordinators on this broker that match all
filters. A state that does not exist is returned in `unknown_state_filters`. A pattern (version 2)
must match the whole id.
"""

from datetime import UTC, datetime, timedelta

from kio.schema.describe_transactions.v0.response import (
    DescribeTransactionsResponse,
    TopicData,
)
from kio.schema.describe_transactions.v0.response import TransactionState as DescribedState
from kio.schema.list_transactions.v2.response import ListTransactionsResponse
from kio.schema.list_transactions.v2.response import TransactionState as ListedState

from tidelog.api.groups.internal_topics import TRANSACTION_STATE
from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import Parts, in_slices
from tidelog.coordination.groups.consumer.expressions import InvalidExpression, compiled
from tidelog.coordination.transactions.describing import (
    TransactionFilter,
    by_topic,
    known_states,
)
from tidelog.coordination.transactions.requests import (
    DescribeTransaction,
    ListTransactionIds,
    TransactionDescribed,
)
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.effects import Coordinate, CoordinateAll
from tidelog.model.errors import ErrorCode

PARTS = Parts(("transactional_ids",), ("transaction_states",), 100)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def describe(request: Request) -> Handling:
    """Describes the transactions of transactional ids."""
    states = []
    for id_ in request.message.transactional_ids:
        if id_:
            asked = DescribeTransaction(id_)
            described = yield Coordinate(id_, asked, TRANSACTION_STATE)
        else:
            described = TransactionDescribed(ErrorCode.invalid_request)
        states.append(_described(id_, described))
    return DescribeTransactionsResponse(
        throttle_time=timedelta(0), transaction_states=tuple(states)
    )


def _described(transactional_id: str, described: TransactionDescribed) -> DescribedState:
    error, transaction = described
    if transaction is None:
        return DescribedState(
            error_code=error,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout=timedelta(0),
            transaction_start_time=_EPOCH,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    return DescribedState(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout=timedelta(milliseconds=transaction.timeout_ms),
        transaction_start_time=_EPOCH + timedelta(milliseconds=transaction.started_at),
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=tuple(
            TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(transaction.partitions).items()
        ),
    )


def list_transactions(request: Request) -> Handling:
    """Lists the transactional ids that this broker coordinates."""
    message = request.message
    states, unknown = known_states(message.state_filters)
    try:
        pattern = message.transactional_id_pattern
        # RE2, as in Kafka: with Python's engine, a hostile pattern could block the node (F63).
        expression = compiled(pattern) if pattern else None
    except InvalidExpression:
        return _listed(ErrorCode.invalid_regular_expression, (), ())
    wanted = TransactionFilter(
        states if message.state_filters else None,
        frozenset(message.producer_id_filters) or None,
        message.duration_filter,
        expression,
    )
    answers = yield CoordinateAll(ListTransactionIds(wanted), TRANSACTION_STATE)
    error = next((one.error for one in answers if one.error is not ErrorCode.none), ErrorCode.none)
    if error is not ErrorCode.none:
        return _listed(error, (), ())
    found = [pair for one in answers for pair in one.transactions]
    listed = yield from in_slices(found, _state)
    return _listed(ErrorCode.none, tuple(unknown), tuple(listed))


def _state(found: tuple[str, Transaction]) -> ListedState:
    id_, transaction = found
    return ListedState(
        transactional_id=id_,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.title,
    )


def _listed(
    error: ErrorCode, unknown: tuple[str, ...], listed: tuple[ListedState, ...]
) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time=timedelta(0),
        error_code=error,
        unknown_state_filters=unknown,
        transaction_states=listed,
    )
