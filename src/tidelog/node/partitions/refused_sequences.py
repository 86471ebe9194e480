"""Remembers batches of idempotent producers that were refused because this broker did not lead.

A client may send several batches of a partition before the first batch is answered. Suppose the
broker refuses the first batch and becomes the leader before the second batch arrives. The broker
then finds a gap before the sequence numbers of the second batch. If it answered
OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka would raise its producer epoch and send all unacknowledged
batches again in the new epoch. Batches that another leader has already appended would be in the log
twice. To prevent this, the second batch gets the same error as the first batch, and the client
retries both in order (F44).
"""

from collections import OrderedDict
from typing import NamedTuple

from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, ProducerId, TopicPartition
from tidelog.node.clock import Clock
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header

REMEMBERED_MS: Millis = 5_000
"""A client may send more batches before it receives the refusal.

These batches arrive within this time.
"""
_MOST = 1_000


class _Refused(NamedTuple):
    base_sequence: int
    at: Millis


_Key = tuple[TopicPartition, ProducerId, int]


class RefusedSequences:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: OrderedDict[_Key, _Refused] = OrderedDict()
        """The first refused batch of each producer, by partition and producer epoch."""

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
        if error is ErrorCode.not_leader_or_follower:
            self._note(partition, records)
        elif error is ErrorCode.out_of_order_sequence_number and self._has_refused_earlier(
            partition, records
        ):
            return AppendResult(ErrorCode.not_leader_or_follower), -1
        return result

    def _note(self, partition: TopicPartition, records: memoryview | None) -> None:
        header = _idempotent_header(records)
        if header is None:
            return
        key = partition, header.producer_id, header.producer_epoch
        known = self._refused.get(key)
        if known is None or self._is_old(known) or header.base_sequence < known.base_sequence:
            self._refused[key] = _Refused(header.base_sequence, self._clock.now)
            self._refused.move_to_end(key)
        if len(self._refused) > _MOST:
            self._refused.popitem(last=False)

    def _has_refused_earlier(self, partition: TopicPartition, records: memoryview | None) -> bool:
        header = _idempotent_header(records) if self._refused else None
        if header is None:
            return False
        known = self._refused.get((partition, header.producer_id, header.producer_epoch))
        if known is None or self._is_old(known):
            return False
        return known.base_sequence < header.base_sequence

    def _is_old(self, refused: _Refused) -> bool:
        return self._clock.now - refused.at > REMEMBERED_MS


def _idempotent_header(records: memoryview | None) -> BatchHeader | None:
    """The header of the first batch, if it has a sequence number."""
    if records is None or len(records) < HEADER_SIZE:
        return None
    header = read_header(records, 0)
    return header if header.producer_id >= 0 and header.base_sequence >= 0 else None
