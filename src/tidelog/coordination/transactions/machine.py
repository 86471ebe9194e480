"""The transaction coordinator of one `__transaction_state` partition, on the coordinators' runtime.

Invariants: a transaction's outcome is decided by the record that is first committed, and it is
final. Markers are sent after that, by the coordinator that leads now, until every partition has
one (F74). A producer is fenced before its transaction is aborted on its behalf (F73).
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.controller.features import TRANSACTION_VERSION
from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import (
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    OutgoingRequest,
    RecordOrigin,
    ToBroker,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.transactions import transaction_records as log_records
from tidelog.coordination.transactions.adding import add_partitions, verify_partitions
from tidelog.coordination.transactions.changes import (
    ChecksDue,
    LeadersChanged,
    MarkerAnswered,
    MarkersBegun,
    MarkersDone,
    MarkersSent,
    OutcomeWritten,
    ValueVersion,
)
from tidelog.coordination.transactions.describing import listed
from tidelog.coordination.transactions.ending import end_transaction
from tidelog.coordination.transactions.expiring import abort_late, expired
from tidelog.coordination.transactions.initializing import init_producer
from tidelog.coordination.transactions.marker_messages import (
    LOWEST_WRITE_TXN_MARKERS_VERSION,
    WRITE_TXN_MARKERS_VERSION,
    errors_of,
    request_of,
)
from tidelog.coordination.transactions.markers import PendingMarkers, TxnMarker
from tidelog.coordination.transactions.requests import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducer,
    ListTransactionIds,
    PartitionsAdded,
    ProducerAssigned,
    TransactionDescribed,
    TransactionResult,
    TransactionsListed,
    refused,
)
from tidelog.coordination.transactions.transaction import EPOCH_PER_TRANSACTION, Transaction
from tidelog.coordination.transactions.transaction_records import TransactionKey
from tidelog.coordination.transactions.verdict import Verdict
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, NodeId, TopicPartition

TransactionRecord: TypeAlias = tuple[TransactionKey, Transaction | None]
"""A record of `__transaction_state`; a transaction of None is a tombstone."""
_Decision: TypeAlias = CoordinatorDecision[TransactionRecord]

_ERRORS = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}
"""The error that a client receives for each append error, as in Kafka."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    id_expiration_ms: Millis
    abort_interval_ms: Millis
    """How often transactions past their timeout are aborted."""
    expiry_interval_ms: Millis
    """How often expired transactional ids are removed."""


class TransactionMachine(CoordinatorMachine[TransactionRecord]):
    def __init__(self, settings: TransactionSettings, coordinator_epoch: LeaderEpoch) -> None:
        self._settings = settings
        self._transactions: dict[str, Transaction] = {}
        self._markers = PendingMarkers(coordinator_epoch)
        self._checks: ChecksDue | None = None
        self._value_version = log_records.FIRST_FLEXIBLE_VALUE

    @property
    def transactions(self) -> dict[str, Transaction]:
        return self._transactions

    # -- Records -----------------------------------------------------------------------------------

    def encode(self, record: TransactionRecord) -> LogRecord:
        key, transaction = record
        if transaction is None:
            return log_records.encode_key(key), None
        value = log_records.encode_value(transaction, self._value_version)
        return log_records.encode_key(key), value

    def decode(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        decoded = log_records.decode_key(key)
        if decoded is None:
            return None
        return decoded, None if value is None else log_records.decode_value(value)

    def replay(self, record: TransactionRecord, origin: RecordOrigin) -> None:
        key, transaction = record
        if transaction is None:
            self._transactions.pop(key.transactional_id, None)
        else:
            self._transactions[key.transactional_id] = transaction

    def apply(self, change: Any) -> None:
        match change:
            case MarkersBegun():
                self._markers.begin(change.transactional_id, change.transaction, change.now)
            case MarkersSent():
                self._markers.sent(change.due, change.now)
            case MarkerAnswered():
                self._markers.answered(change.marker, change.errors, change.now)
            case MarkersDone():
                self._markers.forget(change.transactional_id)
            case LeadersChanged():
                self._markers.leaders_changed(change.leader_of, change.now)
            case ChecksDue():
                self._checks = change
            case ValueVersion():
                self._value_version = change.version
            case _:
                super().apply(change)

    # -- Requests ----------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> _Decision:
        message = request.message
        match message:
            case InitProducer():
                return self._init_producer(message, at)
            case AddPartitions():
                return self._add_partitions(message, at)
            case EndTransaction():
                return self._end(message, at)
            case DescribeTransaction():
                return self._describe(message)
            case ListTransactionIds():
                found = tuple(listed(self._transactions, message.filter, at.wall))
                return CoordinatorDecision(response=TransactionsListed(ErrorCode.none, found))
            case _:
                raise AssertionError(f"not a request to a transaction coordinator: {message}")

    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        return refuse_request(request, error)

    def _init_producer(self, message: InitProducer, at: Instant) -> _Decision:
        verdict = init_producer(
            self._transactions.get(message.transactional_id),
            message.timeout_ms,
            message.expected,
            message.new_producer_id,
            _server_version(at.image),
            at.wall,
        )
        return self._assign(message.transactional_id, verdict, verdict.next, at)

    def _end(self, message: EndTransaction, at: Instant) -> _Decision:
        known = self._transactions.get(message.transactional_id)
        verdict = end_transaction(
            known,
            message.producer_id,
            message.epoch,
            commits=message.commits,
            client_version=message.client_version,
            new_producer_id=message.new_producer_id,
            now=at.wall,
        )
        assigned = known
        if verdict.next is not None:
            # If the epochs are exhausted, the client continues with the next producer id.
            assigned = verdict.next.completed(at.wall)
        if message.client_version < EPOCH_PER_TRANSACTION:
            assigned = None
        return self._assign(message.transactional_id, verdict, assigned, at)

    def _assign(
        self, transactional_id: str, verdict: Verdict, assigned: Transaction | None, at: Instant
    ) -> _Decision:
        """Write the decision, and answer with the producer id and epoch of `assigned`."""
        error = verdict.error
        response = ProducerAssigned(error, needs_producer_id=verdict.needs_producer_id)
        if error is ErrorCode.none and assigned is not None and not verdict.needs_producer_id:
            response = ProducerAssigned(error, assigned.producer_id, assigned.epoch)
        if verdict.next is None:
            return CoordinatorDecision(response=response)
        return self._write(transactional_id, verdict.next, at, response)

    def _add_partitions(self, message: AddPartitions, at: Instant) -> _Decision:
        known = self._transactions.get(message.transactional_id)
        producer = message.producer_id, message.epoch
        if message.verify_only:
            errors = verify_partitions(known, *producer, message.partitions)
            found = tuple(errors[partition] for partition in message.partitions)
            return CoordinatorDecision(response=PartitionsAdded(found))
        verdict = add_partitions(
            known, *producer, message.partitions, message.client_version, at.wall
        )
        response = PartitionsAdded((verdict.error,) * len(message.partitions))
        if verdict.next is None:
            return CoordinatorDecision(response=response)
        return self._write(message.transactional_id, verdict.next, at, response)

    def _describe(self, message: DescribeTransaction) -> _Decision:
        transaction = self._transactions.get(message.transactional_id)
        if transaction is None:
            error = ErrorCode.transactional_id_not_found
            return CoordinatorDecision(response=TransactionDescribed(error))
        missing = self._markers.missing(message.transactional_id)
        if missing is not None:
            transaction = transaction.with_markers_missing(missing)
        return CoordinatorDecision(response=TransactionDescribed(ErrorCode.none, transaction))

    def _write(
        self, transactional_id: str, transaction: Transaction, at: Instant, response: Any
    ) -> _Decision:
        return CoordinatorDecision(
            records=((TransactionKey(transactional_id), transaction),),
            response=response,
            changes=self._first_checks(at),
            then=_prepared(transactional_id, transaction),
        )

    # -- Markers -----------------------------------------------------------------------------------

    def loaded(self, at: Instant) -> Iterator[_Decision]:
        """Resume the transactions whose outcome an earlier coordinator has written (F74)."""
        yield CoordinatorDecision(changes=(_value_version(at.image),))
        if self._transactions:
            yield CoordinatorDecision(changes=self._first_checks(at))
        for id_, transaction in list(self._transactions.items()):
            if transaction.is_ending:
                yield CoordinatorDecision(then=_prepared(id_, transaction))

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[_Decision]:
        assert isinstance(then, OutcomeWritten)
        transaction = self._transactions.get(then.transactional_id)
        if transaction is None or _prepared(then.transactional_id, transaction) != then:
            return
        if error is not ErrorCode.none:
            yield CoordinatorDecision(then=then)  # wait on, because the record is in the log
            return
        yield CoordinatorDecision(
            changes=(MarkersBegun(then.transactional_id, transaction, at.now),)
        )
        yield from self._advance(at)

    def answered(
        self, reply_to: Hashable, answer: Any | NoAnswer, at: Instant
    ) -> Iterator[_Decision]:
        assert isinstance(reply_to, tuple)
        markers: tuple[TxnMarker, ...] = reply_to
        if isinstance(answer, NoAnswer):
            results = [(marker, dict[TopicPartition, ErrorCode]()) for marker in markers]
        else:
            results = [(marker, dict(errors)) for marker, errors in errors_of(answer, markers)]
        yield CoordinatorDecision(
            changes=tuple(MarkerAnswered(marker, errors, at.now) for marker, errors in results)
        )
        yield from self._advance(at)

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[_Decision]:
        if old.features is not at.image.features:
            yield CoordinatorDecision(changes=(_value_version(at.image),))
        if old.topics is not at.image.topics and self._markers.are_pending:
            changed = LeadersChanged(lambda partition: _leader(at.image, partition), at.now)
            yield CoordinatorDecision(changes=(changed,))
            yield from self._advance(at)

    def _advance(self, at: Instant) -> Iterator[_Decision]:
        """Send the markers that are due, and end the transactions that have all of theirs."""
        due = self._markers.due(lambda partition: _leader(at.image, partition), at.now)
        if any(due):
            yield CoordinatorDecision(
                changes=(MarkersSent(due, at.now),),
                requests=tuple(
                    OutgoingRequest(
                        ToBroker(leader),
                        request_of(markers),
                        WRITE_TXN_MARKERS_VERSION,
                        tuple(markers),
                        LOWEST_WRITE_TXN_MARKERS_VERSION,
                    )
                    for leader, markers in due.by_leader.items()
                ),
                # The outcomes are committed. What was appended later does not matter to them.
                at_once=True,
            )
        for id_ in self._markers.finished():
            ended = self._transactions[id_].completed(at.wall)
            yield CoordinatorDecision(
                records=((TransactionKey(id_), ended),), changes=(MarkersDone(id_),)
            )

    # -- Time --------------------------------------------------------------------------------------

    def tick(self, at: Instant) -> Iterator[_Decision]:
        yield from self._advance(at)
        checks, settings = self._checks, self._settings
        if checks is None:
            return
        if checks.abort_at <= at.now:
            late = abort_late(self._transactions, _server_version(at.image), at.settled_wall)
            for id_, aborted in late.items():
                yield CoordinatorDecision(
                    records=((TransactionKey(id_), aborted),), then=_prepared(id_, aborted)
                )
            abort_at = at.now + settings.abort_interval_ms
            yield CoordinatorDecision(changes=(checks._replace(abort_at=abort_at),))
        checks = self._checks
        assert checks is not None
        if checks.expire_at <= at.now:
            gone = expired(self._transactions, settings.id_expiration_ms, at.settled_wall)
            if gone:
                yield CoordinatorDecision(
                    records=tuple((TransactionKey(id_), None) for id_ in gone), is_atomic=False
                )
            expire_at = at.now + settings.expiry_interval_ms
            yield CoordinatorDecision(changes=(checks._replace(expire_at=expire_at),))

    def next_deadline(self) -> Millis | None:
        if not self._transactions or self._checks is None:
            return None
        deadlines = (self._markers.next_deadline(), *self._checks)
        return min(deadline for deadline in deadlines if deadline is not None)

    def _first_checks(self, at: Instant) -> tuple[ChecksDue, ...]:
        """When to check for the first time; empty if the checks have begun already."""
        if self._checks is not None:
            return ()
        settings = self._settings
        return (
            ChecksDue(at.now + settings.abort_interval_ms, at.now + settings.expiry_interval_ms),
        )


def refuse_request(request: CoordinatorRequest, error: ErrorCode) -> TransactionResult:
    """The response to a request that fails with an error of the runtime or of the log."""
    return refused(request.message, _ERRORS.get(error, error))


def _prepared(transactional_id: str, transaction: Transaction) -> OutcomeWritten | None:
    """What to do once a record is committed: send markers if it decides an outcome."""
    if not transaction.is_ending:
        return None
    return OutcomeWritten(transactional_id, transaction.producer_id, transaction.epoch)


def _server_version(image: ClusterImage) -> int:
    return image.features.get(TRANSACTION_VERSION, 0)


def _value_version(image: ClusterImage) -> ValueVersion:
    return ValueVersion(log_records.value_version(_server_version(image)))


def _leader(image: ClusterImage, partition: TopicPartition) -> NodeId | None:
    found = image.partition(partition)
    return None if found is None else found.leader
