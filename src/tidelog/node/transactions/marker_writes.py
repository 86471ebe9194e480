"""Appends the markers that end transactions, as the leader of their partitions.

A marker in the partition of a group coordinator also ends the transaction for the coordinator,
which then shows or drops the transaction's offsets (F76).
"""

from typing import Protocol

from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.log.producers.markers import EndTransactionMarker, marker_batch
from tidelog.log.results import AppendOrigin
from tidelog.model.effects import AppendResult, MarkerWrite, WriteMarkers
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.requests.pending import Pending


class CoordinatedPartitions(Protocol):
    """The group coordinators on this broker, as far as transactions concern them."""

    def is_loading(self, partition: TopicPartition) -> bool:
        """Whether a coordinator of this partition is being loaded."""

    def transaction_ended(
        self,
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        end: Offset,
        *,
        committed: bool,
    ) -> None:
        """A marker was appended to a coordinator's partition, with `end` after it."""


class MarkerWrites:
    def __init__(
        self, clock: Clock, partitions: Partitions, coordinated: CoordinatedPartitions
    ) -> None:
        self._clock = clock
        self._partitions = partitions
        self._coordinated = coordinated

    def write(self, effect: WriteMarkers, resume: Resume) -> list[ErrorCode] | Parked:
        """Append the markers, and park the request until all of them are committed."""

        def settled(results: list[AppendResult]) -> None:
            resume([result.error for result in results])

        appended = [self._append(marker) for marker in effect.markers]
        pending = Pending([AppendResult(error) for error, _ in appended], settled, AppendResult)
        is_waiting = False
        for place, (marker, (_, end)) in enumerate(zip(effect.markers, appended, strict=True)):
            replica = self._partitions.get(marker.partition)
            if end >= 0 and replica is not None and not replica.has_acknowledged(-1, end):
                pending.expect(place)
                replica.await_ack(-1, end, pending, place)
                is_waiting = True
        if not is_waiting:
            return [error for error, _ in appended]
        deadline = self._clock.now + effect.timeout_ms
        pending.timer = self._clock.timers.at(deadline, pending.time_out)
        return PARKED

    def _append(self, marker: MarkerWrite) -> tuple[ErrorCode, Offset]:
        """Append one marker; returns the offset after it, or -1."""
        partition = marker.partition
        replica = self._partitions.leading(partition)
        if isinstance(replica, ErrorCode):
            return replica, -1
        if self._coordinated.is_loading(partition):
            # The load would not see the marker. The coordinator of the transaction retries.
            return ErrorCode.not_leader_or_follower, -1
        end_marker = EndTransactionMarker(not marker.commits, marker.coordinator_epoch)
        batch = marker_batch(marker.producer_id, marker.epoch, end_marker, self._clock.wall)
        origin = AppendOrigin.EPOCH_MARKER if marker.raises_epoch else AppendOrigin.COORDINATOR
        records = memoryview(bytearray(batch))
        result, end = self._partitions.append_own(replica, records, origin)
        if end >= 0:
            producer = ProducerIdAndEpoch(marker.producer_id, marker.epoch)
            self._coordinated.transaction_ended(partition, producer, end, committed=marker.commits)
        return result.error, end
