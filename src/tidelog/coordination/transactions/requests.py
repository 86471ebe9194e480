"""The requests to a transaction coordinator, and its results, apart from their wire format."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tidelog.coordination.transactions.describing import TransactionFilter
from tidelog.coordination.transactions.initializing import KnownProducer
from tidelog.coordination.transactions.transaction import NO_PRODUCER_EPOCH, Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, Millis, ProducerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    """Assign an epoch to a producer. -> ProducerAssigned"""

    transactional_id: str
    timeout_ms: Millis
    expected: KnownProducer | None = None
    new_producer_id: ProducerId | None = None
    """An unused id, if the coordinator has asked for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """Add partitions to a transaction. -> PartitionsAdded"""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    partitions: tuple[TopicPartition, ...]
    client_version: int = 0
    verify_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """Commit or abort a transaction. -> ProducerAssigned, with the producer's next epoch"""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    commits: bool
    client_version: int = 0
    new_producer_id: ProducerId | None = None


@dataclass(frozen=True, slots=True)
class DescribeTransaction:
    """Describe one transactional id. -> TransactionDescribed"""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ListTransactionIds:
    """List the transactional ids of a coordinator. -> TransactionsListed"""

    filter: TransactionFilter


TransactionRequest: TypeAlias = (
    InitProducer | AddPartitions | EndTransaction | DescribeTransaction | ListTransactionIds
)


class ProducerAssigned(NamedTuple):
    error: ErrorCode
    producer_id: ProducerId = NO_PRODUCER
    epoch: int = NO_PRODUCER_EPOCH
    needs_producer_id: bool = False
    """Whether to send the request again with a new producer id."""


class PartitionsAdded(NamedTuple):
    errors: tuple[ErrorCode, ...]
    """One per partition, in order."""


class TransactionDescribed(NamedTuple):
    error: ErrorCode
    transaction: Transaction | None = None


class TransactionsListed(NamedTuple):
    error: ErrorCode
    transactions: tuple[tuple[str, Transaction], ...] = ()


TransactionResult: TypeAlias = (
    ProducerAssigned | PartitionsAdded | TransactionDescribed | TransactionsListed
)


def refused(request: TransactionRequest, error: ErrorCode) -> TransactionResult:
    """The result of a request that fails as a whole."""
    match request:
        case InitProducer() | EndTransaction():
            return ProducerAssigned(error)
        case AddPartitions():
            return PartitionsAdded((error,) * len(request.partitions))
        case DescribeTransaction():
            return TransactionDescribed(error)
        case ListTransactionIds():
            return TransactionsListed(error)
