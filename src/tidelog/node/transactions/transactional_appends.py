"""Appends batches of transactions, after the coordinator has confirmed the transaction (KIP-890).

The first batch of a transaction in a partition is verified: the coordinator must know that the
partition belongs to the open transaction. With transaction version 2 the leader adds the partition
itself. Later batches need no verification, because the log holds the open transaction.

Invariant: no record of a transaction is appended that its coordinator does not know, or has ended.
Otherwise, the record would get no marker, and the last stable offset would stand still (F72), or it
would become part of the producer's next transaction (F73). The log itself refuses a batch that
begins a transaction if a marker was appended after the verification. If a marker is appended during
the verification, the coordinator is asked again: the marker may belong to the transaction before.

While a batch is verified, the next request of the same connection does not start, so the batches of
a producer stay in order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value
from tidelog.log.results import AppendOrigin
from tidelog.model.effects import (
    AppendBatches,
    AppendInTransaction,
    AppendResult,
    JoinTransaction,
    PartitionAppend,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, ConnId, Millis, Offset, ProducerId, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.append_checks import Hold
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.transactions.coordinator_client import Errors, Joining, TransactionCoordinators
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header

VERIFICATION_ENABLE = "transaction.partition.verification.enable"

_UNAVAILABLE = frozenset(
    {
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Errors of a coordinator that all clients retry if they get NOT_ENOUGH_REPLICAS, as in Kafka."""


class _Unverified(NamedTuple):
    place: int
    partition: TopicPartition
    producer_id: ProducerId
    epoch: int
    leadership: object
    """The leadership during which the verification began."""
    marker_offset: Offset
    """The producer's last marker when the verification began."""


class TransactionalAppends:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        partitions: Partitions,
        coordinators: TransactionCoordinators,
        hold: Hold,
    ) -> None:
        self._settings = settings
        self.clock = clock
        self.partitions = partitions
        self.coordinators = coordinators
        self._hold = hold

    def append(
        self, effect: AppendInTransaction, resume: Resume, conn: ConnId
    ) -> list[AppendResult] | Parked:
        """Append the batches, and park the request for the verification and for `acks`."""
        unverified = [
            found
            for place, append in enumerate(effect.appends)
            if (found := self._unverified(place, append)) is not None
        ]
        if not effect.adds and not self._verifies:
            for one in unverified:
                self._trust(one)
            unverified = []
        if not unverified:
            plain = AppendBatches(effect.appends, effect.acks, effect.timeout_ms)
            return self.partitions.append(plain, resume, AppendOrigin.CLIENT, conn)
        # The host reuses the records' memory after this event, so keep a copy.
        effect.appends = [_copied(append) for append in effect.appends]
        release = self._hold(conn)

        def finish(results: list[AppendResult]) -> None:
            release()
            resume(results)

        verified = _Verification(self, effect, unverified, finish).joined
        _Joining(self, effect.transactional_id, unverified, verified, adds=effect.adds).begin()
        return PARKED

    def join(self, effect: JoinTransaction, resume: Resume) -> ErrorCode | Parked:
        """Make sure that a partition belongs to a transaction before its offsets are appended."""
        replica = self.partitions.leading(effect.partition)
        if isinstance(replica, ErrorCode):
            return replica
        if replica.log.has_open_transaction(effect.producer_id, effect.epoch):
            return ErrorCode.none
        one = _Unverified(
            0,
            effect.partition,
            effect.producer_id,
            effect.epoch,
            replica.leader,
            replica.log.marker_offset(effect.producer_id),
        )

        if not effect.adds and not self._verifies:
            self._trust(one)
            return ErrorCode.none
        unverified = [one]

        def answered(errors: Errors) -> None:
            error = errors[effect.partition]
            if error is ErrorCode.none:
                error = self.confirm(unverified[0])
            resume(error)

        _Joining(self, effect.transactional_id, unverified, answered, adds=effect.adds).begin()
        return PARKED

    def confirm(self, one: _Unverified) -> ErrorCode:
        """Let the log accept a transaction that its coordinator has confirmed."""
        replica = self.partitions.get(one.partition)
        if replica is None or replica.leader is not one.leadership:
            return ErrorCode.not_leader_or_follower
        self._trust(one)
        return ErrorCode.none

    def _trust(self, one: _Unverified) -> None:
        replica = self.partitions.get(one.partition)
        assert replica is not None
        replica.log.transaction_verified(one.producer_id, one.marker_offset)

    def newest_marker(self, one: _Unverified) -> Offset:
        """The producer's last marker now. It differs if one came during the verification."""
        replica = self.partitions.get(one.partition)
        if replica is None or replica.leader is not one.leadership:
            return one.marker_offset
        return replica.log.marker_offset(one.producer_id)

    @property
    def retry_ms(self) -> tuple[Millis, Millis]:
        """How often, and for how long, to ask again while the last transaction is ending."""
        settings = self._settings
        return (
            settings.add_partitions_to_txn_retry_backoff_ms,
            settings.add_partitions_to_txn_retry_backoff_max_ms,
        )

    @property
    def _verifies(self) -> bool:
        """Whether to verify the partitions that clients of transaction version 1 have added."""
        image = self.partitions.current.image
        return bool(broker_value(image, self._settings, VERIFICATION_ENABLE))

    def _unverified(self, place: int, append: PartitionAppend) -> _Unverified | None:
        """A batch that may begin a transaction in its partition; None if it needs no check."""
        replica = self.partitions.get(append.partition)
        header = _header(append.records)
        if replica is None or replica.leader is None or header is None:
            return None  # the append itself is refused
        if not header.is_transactional:
            return None
        producer_id, epoch = header.producer_id, header.producer_epoch
        if replica.log.has_open_transaction(producer_id, epoch):
            return None
        marker_offset = replica.log.marker_offset(producer_id)
        return _Unverified(
            place, append.partition, producer_id, epoch, replica.leader, marker_offset
        )


class _Joining:
    """Asks the coordinator about partitions, again while the producer's last transaction ends.

    `unverified` is up to date when `done` is called.
    """

    def __init__(
        self,
        owner: TransactionalAppends,
        transactional_id: str,
        unverified: list[_Unverified],
        done: Callable[[Errors], None],
        *,
        adds: bool,
    ) -> None:
        self._owner = owner
        self._unverified = unverified
        first = unverified[0]
        self._request = Joining(
            transactional_id,
            first.producer_id,
            first.epoch,
            tuple(one.partition for one in unverified if _producer(one) == _producer(first)),
            verify_only=not adds,
        )
        self._done = done
        self._pause_ms, patience_ms = owner.retry_ms
        self._deadline = owner.clock.now + patience_ms

    def begin(self) -> None:
        self._owner.coordinators.join(self._request, self._answered)

    def _answered(self, errors: Errors) -> None:
        clock = self._owner.clock
        again = clock.now + self._pause_ms
        is_ending = ErrorCode.concurrent_transactions in errors.values()
        if is_ending and not self._request.verify_only and again <= self._deadline:
            # The markers of the last transaction are on their way, which is soon over.
            clock.timers.at(again, self.begin)
        elif self._got_markers():
            self.begin()
        else:
            self._done(errors)

    def _got_markers(self) -> bool:
        """Whether the answer may be out of date, because a marker has come since the question."""
        before = list(self._unverified)
        self._unverified[:] = [
            one._replace(marker_offset=self._owner.newest_marker(one)) for one in before
        ]
        return self._unverified != before


@dataclass(slots=True, eq=False)
class _Verification:
    """One Produce request whose batches are verified."""

    owner: TransactionalAppends
    effect: AppendInTransaction
    unverified: list[_Unverified]
    resume: Resume

    def joined(self, errors: Errors) -> None:
        refused = self._refusals(errors)
        effect = self.effect
        accepted = [append for place, append in enumerate(effect.appends) if place not in refused]

        def appended(results: list[AppendResult]) -> None:
            left = iter(results)
            self.resume(
                [
                    refused[place] if place in refused else next(left)
                    for place in range(len(effect.appends))
                ]
            )

        plain = AppendBatches(accepted, effect.acks, effect.timeout_ms)
        results = self.owner.partitions.append(plain, appended, AppendOrigin.CLIENT)
        if results is not PARKED:
            appended(results)

    def _refusals(self, errors: Errors) -> Mapping[int, AppendResult]:
        refused: dict[int, AppendResult] = {}
        partitions = self.owner.partitions
        for one in self.unverified:
            error = errors.get(one.partition, ErrorCode.invalid_producer_id_mapping)
            result = self._result(error) or self._late_refusal(one)
            if result is not None:
                # Later batches of the producer must not be appended before this one (F44).
                records = self.effect.appends[one.place].records
                refusal = partitions.refused.judge(one.partition, records, (result, NO_OFFSET))
                refused[one.place] = refusal[0]
        return refused

    def _late_refusal(self, one: _Unverified) -> AppendResult | None:
        """The refusal of a batch whose transaction is confirmed; None if the log may decide."""
        error = self.owner.confirm(one)
        if error is not ErrorCode.none:
            return AppendResult(error)
        replica = self.owner.partitions.get(one.partition)
        header = _header(self.effect.appends[one.place].records)
        assert replica is not None
        assert header is not None
        if (
            self.effect.adds
            and header.base_sequence > 0
            and not replica.log.has_producer(one.producer_id)
        ):
            # A transaction of version 2 has an epoch of its own, so its first sequence number is 0.
            return AppendResult(
                ErrorCode.out_of_order_sequence_number,
                message=f"Out of order sequence number for producer {one.producer_id}: "
                f"{header.base_sequence} (incoming), expected 0",
            )
        return None

    def _result(self, error: ErrorCode) -> AppendResult | None:
        """The result that a client gets for a coordinator's error, as in Kafka."""
        if error is ErrorCode.none:
            return None
        if error in _UNAVAILABLE or (
            error is ErrorCode.concurrent_transactions and not self.effect.adds
        ):
            return AppendResult(
                ErrorCode.not_enough_replicas,
                message="Unable to verify the partition has been added to the transaction. "
                f"Underlying error: {error.name.upper()}",
            )
        if error is ErrorCode.producer_fenced:
            return AppendResult(ErrorCode.invalid_producer_epoch)
        if error is ErrorCode.transaction_abortable and not self.effect.names_abortable:
            error = ErrorCode.invalid_txn_state
        if error is ErrorCode.invalid_txn_state:
            return AppendResult(error, message="Partition was not added to the transaction")
        return AppendResult(error)


def _producer(one: _Unverified) -> tuple[ProducerId, int]:
    return one.producer_id, one.epoch


def _header(records: memoryview | None) -> BatchHeader | None:
    if records is None or len(records) < HEADER_SIZE:
        return None
    return read_header(records)


def _copied(append: PartitionAppend) -> PartitionAppend:
    if append.records is None:
        return append
    return append._replace(records=memoryview(bytearray(append.records)))
