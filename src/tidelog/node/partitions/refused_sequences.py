"""Remembers batches of idempotent producers that this broker refused, or removed from its log.

A client may send several batches of a partition before the first batch is answered. Suppose the
first batch is not in the log when the second one arrives: the broker refused it for the moment, or
appended it, lost the leadership, truncated it and leads again. The broker then finds a gap before
the sequence numbers of the second batch. If it answered OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka
would raise its producer epoch and send all unacknowledged batches of all partitions again in the
new epoch. Batches that are already in a log would then be in it twice. To prevent this, the second
batch gets an error after which the client retries both batches in order (F44). The same holds if
the log does not know the producer yet: it would accept the second batch, and then never the first.

A client that retries sends its earliest batch first. If a batch comes again and the gap is still
there, the client no longer has the batch before it, and learns of the gap.
"""

from collections import OrderedDict
from collections.abc import Iterable

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ProducerSequence
from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Offset, ProducerId, TopicPartition
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header

_MOST = 1_000
TOO_EARLY = AppendResult(ErrorCode.not_leader_or_follower), NO_OFFSET
"""The result for a batch that a client must send again, after the batch before it."""
_FOR_THE_MOMENT = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.kafka_storage_error,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.request_timed_out,
    }
)
"""Errors of a batch that was not appended, after which a client sends the batch again."""


class _Missing:
    """A batch that a client will send again; later batches of the producer may come before it."""

    __slots__ = ("base_sequence", "last_gap")

    def __init__(self, base_sequence: int) -> None:
        self.base_sequence = base_sequence
        self.last_gap = base_sequence
        """The base sequence of the last batch that came too early."""


_Key = tuple[TopicPartition, ProducerId, int]


class RefusedSequences:
    def __init__(self) -> None:
        self.missing: OrderedDict[_Key, _Missing] = OrderedDict()
        """The first missing batch of each producer, by partition and producer epoch."""

    def truncated(self, partition: TopicPartition, removed: Iterable[ProducerSequence]) -> None:
        """Note the first batch of each producer that was removed from the log."""
        for producer_id, epoch, base_sequence in removed:
            self._note((partition, producer_id, epoch), base_sequence)

    def judge(
        self,
        partition: TopicPartition,
        records: memoryview | None,
        result: tuple[AppendResult, Offset],
    ) -> tuple[AppendResult, Offset]:
        """The result to send for a batch that was not appended.

        The returned result may differ from the given result.
        """
        error = result[0].error
        if error in _FOR_THE_MOMENT:
            header = _idempotent_header(records)
            if header is not None:
                self._note(_key(partition, header), header.base_sequence)
        elif (
            error is ErrorCode.out_of_order_sequence_number
            and self.missing
            and self._came_too_early(partition, _idempotent_header(records))
        ):
            return TOO_EARLY
        return result

    def precedes_first(
        self, partition: TopicPartition, records: memoryview, log: PartitionLog
    ) -> bool:
        """Whether the log would take this batch for a new producer's first one, but it is not."""
        header = _idempotent_header(records)
        if header is None or log.has_producer(header.producer_id):
            return False
        return self._came_too_early(partition, header)

    def _note(self, key: _Key, base_sequence: int) -> None:
        known = self.missing.get(key)
        if known is None or base_sequence <= known.last_gap:
            # A batch at or below the last gap is a retry: its successors will come again, too.
            self.missing[key] = _Missing(base_sequence)
            self.missing.move_to_end(key)
        else:
            known.last_gap = base_sequence
        if len(self.missing) > _MOST:
            self.missing.popitem(last=False)

    def _came_too_early(self, partition: TopicPartition, header: BatchHeader | None) -> bool:
        known = None if header is None else self.missing.get(_key(partition, header))
        if header is None or known is None or header.base_sequence <= known.last_gap:
            return False
        known.last_gap = header.base_sequence
        return True


def _key(partition: TopicPartition, header: BatchHeader) -> _Key:
    return partition, header.producer_id, header.producer_epoch


def _idempotent_header(records: memoryview | None) -> BatchHeader | None:
    """The header of the first batch, if it has a sequence number."""
    if records is None or len(records) < HEADER_SIZE:
        return None
    header = read_header(records, 0)
    return header if header.producer_id >= 0 and header.base_sequence >= 0 else None
