"""Reports the log directory of each replica to the controller: AssignReplicasToDirs (KIP-858).

The controller needs these reports to elect new leaders when a directory fails. At most one request
is under way at a time. New reports wait for the next request. Reports that were not confirmed are
sent again.
"""

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, Millis, NodeId, TopicId
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Submit

RETRY_MS: Millis = 500
REPLICAS_PER_REQUEST = 2_000
REPLICA_BYTES = 64
"""The maximum size of one replica's entry in a request."""

_Key: TypeAlias = tuple[TopicId, int]


class DirectoryReports:
    def __init__(
        self,
        me: NodeId,
        clock: Clock,
        submit: Submit,
        broker_epoch: Callable[[], BrokerEpoch],
        request_bytes: int,
    ) -> None:
        self._at_most = max(1, min(REPLICAS_PER_REQUEST, request_bytes // REPLICA_BYTES - 4))
        self._me = me
        self._clock = clock
        self._timers = clock.timers
        self._submit = submit
        self._broker_epoch = broker_epoch
        self._waiting: dict[_Key, UUID] = {}
        self._under_way: dict[_Key, UUID] = {}
        self._is_due = False

    def report(self, topic_id: TopicId, index: int, directory: UUID) -> None:
        """Report the replica's directory; the controller confirms it with a new image."""
        key = (topic_id, index)
        if self._under_way.get(key) != directory:
            self._waiting[key] = directory
            self._soon(0)

    def _soon(self, delay: Millis) -> None:
        """Send from a timer, so that all reports of the current event share a request."""
        if not self._is_due:
            self._is_due = True
            self._timers.at(self._clock.now + delay, self._send)

    def _send(self) -> None:
        self._is_due = False
        if self._under_way or not self._waiting:
            return
        if self._broker_epoch() < 0:
            self._soon(RETRY_MS)
            return
        for key in list(self._waiting)[: self._at_most]:
            self._under_way[key] = self._waiting.pop(key)
        self._submit(self._request(), self._answered)

    def _request(self) -> AssignReplicasToDirsRequest:
        directories: dict[UUID, dict[TopicId, list[PartitionData]]] = {}
        for (topic_id, index), directory in self._under_way.items():
            topics = directories.setdefault(directory, {})
            topics.setdefault(topic_id, []).append(PartitionData(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=self._me,
            broker_epoch=self._broker_epoch(),
            directories=tuple(
                DirectoryData(
                    id_=directory,
                    topics=tuple(
                        TopicData(topic_id=topic_id, partitions=tuple(partitions))
                        for topic_id, partitions in topics.items()
                    ),
                )
                for directory, topics in directories.items()
            ),
        )

    def _answered(self, response: Any) -> None:
        asked, self._under_way = self._under_way, {}
        if response.error_code is not ErrorCode.none:
            self._waiting = asked | self._waiting
            self._soon(RETRY_MS)
        elif self._waiting:
            self._soon(0)
