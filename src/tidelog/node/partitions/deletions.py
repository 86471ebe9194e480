"""DeleteRecords: removes the oldest records of a partition, on every live replica.

Invariant: a deletion is confirmed only when no live replica holds the deleted records, so that no
new leader serves them again.
"""

from collections.abc import Callable

from tidelog.model.effects import DeleteRecordsBefore, RecordDeletion, RecordsDeleted
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.requests.pending import Pending


class Deletions:
    def __init__(
        self,
        clock: Clock,
        partitions: Partitions,
        storage_failed: Callable[[TopicPartition, OSError], None],
    ) -> None:
        self._clock = clock
        self._timers = clock.timers
        self._partitions = partitions
        self._storage_failed = storage_failed

    def delete(self, effect: DeleteRecordsBefore, resume: Resume) -> list[RecordsDeleted] | Parked:
        """Advance each log start offset; park the request until the followers have done so too."""
        results = [self._delete_here(deletion) for deletion in effect.deletions]
        pending: Pending[RecordsDeleted] = Pending(results, resume, RecordsDeleted)
        is_waiting = False
        for index, (deletion, result) in enumerate(zip(effect.deletions, results, strict=True)):
            if result.error is not ErrorCode.none:
                continue
            replica = self._partitions.leading(deletion.partition)
            if isinstance(replica, ErrorCode):
                results[index] = RecordsDeleted(replica)  # its directory has failed in the meantime
            elif replica.low_watermark < result.low_watermark:
                pending.expect(index)
                replica.await_deletion(result.low_watermark, pending, index)
                is_waiting = True
        if not is_waiting:
            return results
        deadline = self._clock.now + max(0, effect.timeout_ms)
        pending.timer = self._timers.at(deadline, pending.time_out)
        return PARKED

    def _delete_here(self, deletion: RecordDeletion) -> RecordsDeleted:
        replica = self._partitions.leading(deletion.partition)
        if isinstance(replica, ErrorCode):
            return RecordsDeleted(replica)
        log, high_watermark = replica.log, replica.high_watermark
        if "delete" not in log.config.cleanup_policy:
            return RecordsDeleted(ErrorCode.policy_violation)
        before = high_watermark if deletion.before == -1 else deletion.before
        if before < 0 or before > high_watermark:
            return RecordsDeleted(ErrorCode.offset_out_of_range)
        try:
            replica.delete_before(before)
        except OSError as failure:
            self._storage_failed(deletion.partition, failure)
            return RecordsDeleted(ErrorCode.kafka_storage_error)
        return RecordsDeleted(ErrorCode.none, log.log_start_offset)
