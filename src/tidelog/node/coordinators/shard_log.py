"""The partition of a coordinator's shard: appends, and reports of commits, on the leader's log."""

from collections.abc import Callable, Sequence

from tidelog.coordination.runtime.decision import LogRecord, ProducerIdAndEpoch
from tidelog.log.results import AppendOrigin
from tidelog.model.effects import AppendResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, Offset
from tidelog.node.clock import Clock
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.pending import Pending
from tidelog.protocol.records.records import Record, build_batch

_NO_EPOCH = -1


class ReplicaShardLog:
    """One leadership of one partition; `reported` is called from the ready queue."""

    def __init__(
        self,
        replica: Replica,
        partitions: Partitions,
        clock: Clock,
        ready: ReadyQueue,
        reported: Callable[[ErrorCode], None],
    ) -> None:
        self._replica = replica
        self._partitions = partitions
        self._clock = clock
        self._ready = ready
        self._reported = reported

    @property
    def high_watermark(self) -> Offset:
        return self._replica.high_watermark

    @property
    def largest_batch(self) -> int:
        return self._replica.log.config.largest_batch

    def append(
        self, records: Sequence[LogRecord], producer: ProducerIdAndEpoch | None
    ) -> Offset | ErrorCode:
        wall = self._clock.wall
        batch = build_batch(
            [Record(key, value, wall) for key, value in records],
            producer_id=NO_PRODUCER if producer is None else producer.producer_id,
            producer_epoch=_NO_EPOCH if producer is None else producer.epoch,
            is_transactional=producer is not None,
        )
        result, end = self._partitions.append_own(
            self._replica, memoryview(bytearray(batch)), AppendOrigin.COORDINATOR
        )
        return end if result.error is ErrorCode.none else result.error

    def await_commit(self, end: Offset) -> None:
        def settled(results: list[AppendResult]) -> None:
            self._ready.add((self._reported, (results[0].error,)))

        if self._replica.high_watermark >= end:
            settled([AppendResult(ErrorCode.none)])
            return
        pending = Pending([AppendResult(ErrorCode.none)], settled, AppendResult)
        pending.expect(0)
        self._replica.await_ack(-1, end, pending, 0)
