"""Keyed records on a stage, and a reader that builds a table from them, as Kafka Streams does.

The table holds the last value of each key. A tombstone removes its key. The reader reads the
committed records of the leader, and continues where it has stopped.
"""

from kio.schema.write_txn_markers.v1.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from tidelog.log.results import ReadResult
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Offset, TopicPartition
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch, iterate_records
from tidelog.sim.clients.messages import produce_to
from tidelog.sim.stage.stage import Stage

FILLER = "filler"
FILLER_BYTES = 400


class StageTable:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._producers = 7_000
        self._position: Offset = 0
        self.values: dict[str, str] = {}

    def put(
        self,
        partition: TopicPartition,
        key: str,
        value: str | None,
        *,
        in_transaction: bool = False,
    ) -> str:
        """Write a record with acks=all; returns the result in words."""
        record = Record(
            key.encode(), None if value is None else value.encode(), self._stage.world.now
        )
        if not in_transaction:
            return self._produce(partition, build_batch([record]))
        self._producers += 1
        batch = build_batch(
            [record],
            producer_id=self._producers,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        result = self._produce(partition, batch, f"transaction-{self._producers}")
        return result if result else self._commit(partition, self._producers)

    def _produce(
        self, partition: TopicPartition, batch: bytes, transactional_id: str | None = None
    ) -> str:
        message = produce_to(partition.topic, {partition.partition: batch})
        message.transactional_id = transactional_id
        answer = self._stage.ask(self._stage.leader(partition), message)
        if answer is None:
            return "without an answer"
        error: ErrorCode = answer.topics[0][1][0].error
        return "" if error is ErrorCode.none else f"refused: {error.name}"

    def _commit(self, partition: TopicPartition, producer: int) -> str:
        """Write the marker, as a transaction coordinator does."""
        marker = WritableTxnMarker(
            producer_id=producer,
            producer_epoch=0,
            transaction_result=True,
            topics=(
                WritableTxnMarkerTopic(
                    name=partition.topic, partition_indexes=(partition.partition,)
                ),
            ),
            coordinator_epoch=0,
        )
        message = WriteTxnMarkersRequest(markers=(marker,))
        answer = self._stage.ask(self._stage.leader(partition), message)
        if answer is None:
            return "without an answer"
        error: ErrorCode = answer.markers[0].topics[0].partitions[0].error_code
        return "" if error is ErrorCode.none else f"refused: {error.name}"

    def restart(self) -> None:
        """Forget the table, and read from the start."""
        self._position, self.values = 0, {}

    def read(self, partition: TopicPartition) -> str:
        """Apply the committed records that the reader has not seen; returns the table in words."""
        leader = self._stage.leader(partition)
        replica = None if leader == NO_NODE else self._stage.replica(leader, partition)
        if replica is None:
            return "nobody leads"
        log = replica.log
        limit = log.last_stable_offset(replica.high_watermark)
        self._position = max(self._position, log.log_start_offset)
        while self._position < limit:
            found = log.read(self._position, 1 << 20, limit, at_least_one=True)
            if not isinstance(found, ReadResult):
                return f"refused: {found.name}"
            if found.slice is None:
                break
            file, start, length = found.slice
            self._apply(memoryview(file.read(start, length)))
        return self.told()

    def _apply(self, batches: memoryview) -> None:
        for at, header in iterate(batches):
            if not header.is_control:
                for record in iterate_records(batches[at : at + header.size]):
                    self._set(record)
            self._position = header.next_offset

    def _set(self, record: Record) -> None:
        key = (record.key or b"").decode()
        if record.value is None:
            self.values.pop(key, None)
        elif key != FILLER:
            self.values[key] = record.value.decode()

    def told(self) -> str:
        pairs = ", ".join(f"{key} {value}" for key, value in sorted(self.values.items()))
        return pairs or "the table is empty"
