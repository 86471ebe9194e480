"""An idempotent producer for one topic. A retry after a lost connection writes no duplicates."""

import time
from collections.abc import Iterable
from datetime import timedelta

from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.produce.v9 import request as produce
from kio.schema.produce.v9.response import ProduceResponse

from tidelog.client.client import Client, Moved, explain
from tidelog.client.ledger import Acknowledged, Ledger
from tidelog.client.partitioner import partition_for
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Offset, TopicPartition
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Record, build_batch

ACKS_ALL = -1
BATCH_BYTES = 512 * 1024
"""The maximum size of a batch before compression: half of the default max.message.bytes."""

MAX_SEQUENCE = 2**31
PAUSE_SECONDS = 0.1
RETRY_SECONDS = 30.0
TIMEOUT = timedelta(seconds=30)


class Producer:
    """Holds one producer id and the next sequence number of each partition."""

    def __init__(
        self,
        client: Client,
        topic: str,
        *,
        acks: int,
        compression: str,
        ledger: Ledger | None = None,
    ) -> None:
        self._client = client
        self._topic = topic
        self._acks = acks
        self._compression = compression
        self._ledger = ledger
        self._partitions = client.partitions(topic, create=True)
        self._id, self._epoch = _producer_id(client) if acks == ACKS_ALL else (-1, -1)
        self._next_sequence = dict.fromkeys(self._partitions, 0)
        self._turn = 0

    def send(self, records: Iterable[Record], partition: int | None) -> None:
        """Write the records and wait until they are acknowledged."""
        if partition is not None and partition not in self._next_sequence:
            raise UserError(f"Topic '{self._topic}' has no partition {partition}.")
        # All records of this call without a key go to one partition. The next call uses the next
        # partition.
        keyless = self._partitions[self._turn % len(self._partitions)]
        self._turn += 1
        batches: dict[int, list[Record]] = {}
        sizes: dict[int, int] = {}
        for record in records:
            chosen = partition
            if chosen is None:
                chosen = keyless if record.key is None else self._place(record.key)
            size = len(record.key or b"") + len(record.value or b"")
            if chosen in batches and sizes[chosen] + size > BATCH_BYTES:
                self._write(chosen, batches.pop(chosen))
            sizes[chosen] = size + (sizes[chosen] if chosen in batches else 0)
            batches.setdefault(chosen, []).append(record)
        for chosen, batch in batches.items():
            self._write(chosen, batch)

    def _place(self, key: bytes) -> int:
        return self._partitions[partition_for(key, len(self._partitions))]

    def _write(self, partition: int, records: list[Record]) -> None:
        sequence = self._next_sequence[partition]
        batch = build_batch(
            records,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=sequence if self._id >= 0 else -1,
            compression=self._compression,
        )
        request = produce.ProduceRequest(
            acks=self._acks,
            timeout=TIMEOUT,
            topic_data=(
                produce.TopicProduceData(
                    name=self._topic,
                    partition_data=(produce.PartitionProduceData(index=partition, records=batch),),
                ),
            ),
        )
        base = self._client.until_led(self._topic, lambda: self._ask(partition, request))
        if self._ledger is not None:
            self._enter(self._ledger, partition, base, records)
        self._next_sequence[partition] = (sequence + len(records)) % MAX_SEQUENCE

    def _enter(self, ledger: Ledger, partition: int, base: Offset, records: list[Record]) -> None:
        ledger.enter(
            TopicPartition(self._topic, partition),
            (
                Acknowledged(NO_OFFSET if base < 0 else base + delta, record.key, record.value)
                for delta, record in enumerate(records)
            ),
        )

    def _ask(self, partition: int, request: produce.ProduceRequest) -> Offset:
        """Returns the offset of the first record; NO_OFFSET if the records are duplicates."""
        where = TopicPartition(self._topic, partition)
        (topic,) = self._client.ask_leader(where, request, ProduceResponse).responses
        (answer,) = topic.partition_responses
        error = answer.error_code
        if error is ErrorCode.none:
            return answer.base_offset
        if error is ErrorCode.duplicate_sequence_number:
            return NO_OFFSET
        reason = explain(error, answer.error_message)
        if error.retriable:
            raise Moved(f"partition {where}: {reason}")
        raise UserError(f"partition {where}: {reason}")


def _producer_id(client: Client) -> tuple[int, int]:
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        answer = client.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta()),
            InitProducerIdResponse,
        )
        if answer.error_code is ErrorCode.none:
            return answer.producer_id, answer.producer_epoch
        if not answer.error_code.retriable or time.monotonic() > deadline:
            raise UserError(
                f"no controller has assigned a producer id ({explain(answer.error_code)}); "
                "`tidelog cluster describe` shows whether one is active."
            )
        client.notice.waiting("no controller has assigned a producer id")
        time.sleep(PAUSE_SECONDS)
