"""Reads the topic of replication events: a bounded number of past events, then new events.

If events are disabled, or if the topic has no leader, the topic cannot be read. The reader then
reports the reason and does not wait.
"""

import json
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from kio.schema.fetch.v12 import request as fetch
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.list_offsets.v7.response import ListOffsetsResponse

from tidelog.client.client import Client, Moved, explain
from tidelog.client.log_offsets import EARLIEST, LATEST
from tidelog.insight.replica_history import ReplicaHistory
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Offset, TopicPartition
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.model.user_error import UserError
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import UnreadableRecords, iterate_records

WHERE = TopicPartition(REPLICATION_EVENTS, 0)
DEPTH = 20_000
"""The number of past events to read. The state of each partition is recorded at least once a
minute. So this number covers hours in a small cluster, but only minutes with thousands of
partitions.
"""
FETCH_BYTES = 4 * 1024 * 1024
_OF_BROKERS = b"broker-"


class EventLog:
    """Adds events to a history. If events cannot be read, `missing` is the reason."""

    def __init__(self, client: Client, only: Collection[TopicPartition] | None = None) -> None:
        self.history = ReplicaHistory()
        self.missing: str | None = None
        self._client = client
        self._keys = None if only is None else {str(one).encode() for one in only}
        self._position: Offset | None = None
        self._topic_id: UUID | None = None
        self._is_cut = False
        """Whether the topic has, or once had, events before the first event that was read."""

    def catch_up(self) -> None:
        """Read new events. The first call reads up to `DEPTH` past events."""
        try:
            self._read()
            self.missing = None
        except Moved:
            self.missing = f"no leader of the topic {REPLICATION_EVENTS} answers"
        except UserError as failure:
            self.missing = str(failure).rstrip(".")

    def _read(self) -> None:
        (topic,) = self._client.metadata((REPLICATION_EVENTS,)).topics
        if topic.error_code is ErrorCode.unknown_topic_or_partition:
            raise UserError(
                "this cluster does not record replication events "
                "(tidelog.replication.events.enable)"
            )
        end = self._end(LATEST)
        if self._position is None:
            self._position = self._beginning(end)
            self._is_cut = self._position > 0
        elif topic.topic_id != self._topic_id or self._position > end:
            self._position = self._beginning(end)  # the topic was deleted and created again
        self._topic_id = topic.topic_id
        while self._position < end:
            self._fetch()

    def _beginning(self, end: Offset) -> Offset:
        return max(self._end(EARLIEST), end - DEPTH)

    def _end(self, which: int) -> Offset:
        request = list_offsets.ListOffsetsRequest(
            replica_id=NO_NODE,
            isolation_level=0,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name=REPLICATION_EVENTS,
                    partitions=(
                        list_offsets.ListOffsetsPartition(partition_index=0, timestamp=which),
                    ),
                ),
            ),
        )
        (topic,) = self._client.ask_leader(WHERE, request, ListOffsetsResponse).topics
        _check(topic.partitions[0].error_code)
        return topic.partitions[0].offset

    def _fetch(self) -> None:
        assert self._position is not None
        request = fetch.FetchRequest(
            max_wait=timedelta(0),
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            topics=(
                fetch.FetchTopic(
                    topic=REPLICATION_EVENTS,
                    partitions=(
                        fetch.FetchPartition(
                            partition=0,
                            fetch_offset=self._position,
                            partition_max_bytes=FETCH_BYTES,
                        ),
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
        answer = self._client.ask_leader(WHERE, request, FetchResponse)
        _check(answer.error_code)
        (fetched,) = answer.responses[0].partitions
        _check(fetched.error_code)
        data = memoryview(fetched.records or b"")
        if not data:
            raise UserError(f"the topic {REPLICATION_EVENTS} cannot be read to its end")
        for at, header in iterate(data):
            self._note(data[at : at + header.size])
            self._position = max(self._position, header.next_offset)

    def _note(self, batch: memoryview) -> None:
        try:
            for record in iterate_records(batch):
                if self._is_cut:
                    self.history.begins_at, self._is_cut = record.timestamp, False
                is_meant = self._keys is None or record.key in self._keys
                if is_meant or (record.key or b"").startswith(_OF_BROKERS):
                    self.history.note(json.loads(record.value or b"{}"))
        except (UnreadableRecords, ValueError, KeyError, TypeError):
            raise UserError(
                f"the topic {REPLICATION_EVENTS} contains records that are not replication events"
            ) from None


def _check(error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        reason = f"the topic {REPLICATION_EVENTS} cannot be read: {explain(error)}"
        raise Moved(reason) if error.retriable else UserError(reason)
