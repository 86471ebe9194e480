"""Reads the partitions of one topic without a consumer group; keeps positions in memory only."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import NamedTuple

from kio.schema.fetch.v12 import request as fetch
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.list_offsets.v7.response import ListOffsetsResponse

from tidelog.client.client import Client, Moved, explain
from tidelog.client.log_offsets import EARLIEST, LATEST, offsets_request
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, Offset, TopicPartition
from tidelog.model.user_error import UserError
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, UnreadableRecords, iterate_records

MAX_WAIT_MS = 500
PARTITION_BYTES = 1024 * 1024
FETCH_BYTES = 16 * 1024 * 1024


class Fetched(NamedTuple):
    partition: int
    record: Record
    is_append_time: bool


class Fetcher:
    """Reads records and advances the position in each partition."""

    def __init__(
        self, client: Client, topic: str, *, partition_bytes: int = PARTITION_BYTES
    ) -> None:
        self._client = client
        self._topic = topic
        self._partition_bytes = partition_bytes
        self.positions: dict[int, Offset] = {}
        self._has_waited = False

    def start(self, partitions: list[int], start: Offset) -> None:
        """Start at this offset, or at the EARLIEST or LATEST offset of each partition."""
        for partition in partitions:
            self.positions[partition] = (
                self.end_of(partition, start) if start in (EARLIEST, LATEST) else start
            )

    def end_of(self, partition: int, which: Offset) -> Offset:
        """The first offset of the partition's log (EARLIEST), or its end offset (LATEST)."""
        where = TopicPartition(self._topic, partition)
        request = offsets_request([where], which)

        def attempt() -> Offset:
            (topic,) = self._client.ask_leader(where, request, ListOffsetsResponse).topics
            (answer,) = topic.partitions
            self._check(partition, answer.error_code)
            return answer.offset

        return self._client.until_led(self._topic, attempt)

    def poll(self) -> Iterator[Fetched]:
        """Yield the records of one fetch from each leader; waits briefly for records."""
        self._has_waited = False
        by_leader = self._by_leader()
        wait_ms = MAX_WAIT_MS // max(1, len(by_leader))
        for partitions in by_leader.values():
            for answer in self._fetch(partitions, wait_ms):
                yield from self._records(answer)
        if not self._has_waited:
            self._client.notice.over()

    def _by_leader(self) -> Mapping[NodeId, list[int]]:
        leaders: dict[NodeId, list[int]] = {}
        for partition in self.positions:
            leader = self._client.leader(TopicPartition(self._topic, partition))
            leaders.setdefault(leader, []).append(partition)
        return leaders

    def _fetch(self, partitions: list[int], wait_ms: int) -> list[PartitionData]:
        request = fetch.FetchRequest(
            max_wait=timedelta(milliseconds=wait_ms),
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=(
                fetch.FetchTopic(
                    topic=self._topic,
                    partitions=tuple(
                        fetch.FetchPartition(
                            partition=partition,
                            fetch_offset=self.positions[partition],
                            partition_max_bytes=self._partition_bytes,
                        )
                        for partition in partitions
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
        where = TopicPartition(self._topic, partitions[0])
        try:
            answer = self._client.ask_leader(where, request, FetchResponse)
            if answer.error_code is not ErrorCode.none:
                raise UserError(f"fetch: {explain(answer.error_code)}.")
            return [one for topic in answer.responses for one in topic.partitions]
        except Moved as moved:
            self._wait(moved)
            return []

    def _records(self, answer: PartitionData) -> Iterator[Fetched]:
        partition = answer.partition_index
        if answer.error_code is ErrorCode.offset_out_of_range:
            # The log was truncated, or its start has moved. Continue at the nearest valid offset.
            earliest = self.end_of(partition, EARLIEST)
            latest = self.end_of(partition, LATEST)
            self.positions[partition] = min(max(self.positions[partition], earliest), latest)
            return
        try:
            self._check(partition, answer.error_code)
        except Moved as moved:
            self._wait(moved)
            return
        data = memoryview(answer.records or b"")
        for position, header in iterate(data):
            if not header.is_control:
                batch = data[position : position + header.size]
                yield from self._batch(partition, batch, header.uses_log_append_time)
            self.positions[partition] = max(self.positions[partition], header.next_offset)

    def _batch(self, partition: int, batch: memoryview, is_append_time: bool) -> Iterator[Fetched]:
        try:
            for record in iterate_records(batch):
                # A fetch returns whole batches, so the first batch may start before the position.
                if record.offset >= self.positions[partition]:
                    yield Fetched(partition, record, is_append_time)
        except UnreadableRecords as unreadable:
            raise UserError(
                f"partition {self._topic}-{partition} at {self.positions[partition]}: {unreadable}."
            ) from None

    def _wait(self, moved: Moved) -> None:
        self._has_waited = True
        self._client.look_again(self._topic, moved)

    def _check(self, partition: int, error: ErrorCode) -> None:
        if error is ErrorCode.none:
            return
        reason = f"partition {self._topic}-{partition}: {explain(error)}"
        raise Moved(reason) if error.retriable else UserError(f"{reason}.")
