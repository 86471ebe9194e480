"""Writes to the partitions of a stage. The ledger is the list of acknowledged records.

A write with acks=0 counts as acknowledged when it is sent, because it has no response.
"""

from collections.abc import Callable, Sequence
from itertools import count

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NO_OFFSET, Millis, NodeId, Offset, TopicPartition
from tidelog.sim.clients.messages import answer_in, batch, frame_of, produce_to
from tidelog.sim.stage.stage import Stage

REQUEST_TIMEOUT_MS: Millis = 1_500


class StageWrite:
    """A batch that was sent, and its result."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self.values = values
        self.is_done = False
        self.error: ErrorCode | None = None
        """The error code of the response, or None while there is no response."""
        self.base_offset: Offset = NO_OFFSET

    @property
    def is_acknowledged(self) -> bool:
        return self.is_done and self.error is ErrorCode.none


class StageLedger:
    """The records that were acknowledged to clients."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._numbers = count()
        self.acknowledged: dict[TopicPartition, list[bytes]] = {}

    def begin(
        self,
        partition: TopicPartition,
        acks: int,
        *,
        node: NodeId = NO_NODE,
        records: int = 1,
        then: Callable[[StageWrite], None] | None = None,
    ) -> StageWrite:
        """Send one batch to the leader, or to `node`, which may consider itself the leader."""
        values = [b"%d" % next(self._numbers) for _ in range(records)]
        write = StageWrite(values)
        target = self._stage.leader(partition) if node == NO_NODE else node
        if target == NO_NODE:
            write.is_done, write.error = True, ErrorCode.leader_not_available
            if then is not None:
                then(write)
            return write
        records_sent = batch(*values, timestamp=self._stage.world.now)
        request = produce_to(
            partition.topic,
            {partition.partition: records_sent},
            acks=acks,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

        def answered(frame: bytes | None) -> None:
            write.is_done = True
            if frame is not None:
                [(_, [produced])] = answer_in(frame, request).topics
                write.error, write.base_offset = produced.error, produced.base_offset
            self._settle(partition, write)
            if then is not None:
                then(write)

        client = self._stage.client(target)
        if acks == 0:
            client.send(frame_of(request)[4:])
            write.is_done, write.error = True, ErrorCode.none
            self._settle(partition, write)
        else:
            client.request(frame_of(request), answered)
        return write

    def _settle(self, partition: TopicPartition, write: StageWrite) -> None:
        if write.is_acknowledged:
            self.acknowledged.setdefault(partition, []).extend(write.values)

    @property
    def count(self) -> int:
        """The number of acknowledged records in all partitions."""
        return sum(map(len, self.acknowledged.values()))

    def lost(self, partition: TopicPartition) -> list[bytes] | None:
        """Acknowledged records that the leader's log lacks; None while there is no leader."""
        leader = self._stage.leader(partition)
        if leader == NO_NODE:
            return None
        kept = {record.value for record in self._stage.records(leader, partition)}
        return [one for one in self.acknowledged.get(partition, ()) if one not in kept]
