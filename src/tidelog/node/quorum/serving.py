"""The leader's side of the metadata log, which serves the fetches of voters and observers.

A fetch from offset N proves that its sender has synced everything below N. A fetch is parked until
there is something new: a record, an epoch or a high watermark (KIP-1166).
"""

from datetime import timedelta

from kio.schema.fetch_snapshot.v1 import response as snapshot_response
from kio.schema.fetch_snapshot.v1.request import FetchSnapshotRequest
from kio.schema.fetch_snapshot.v1.response import FetchSnapshotResponse

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NO_NODE, Offset
from tidelog.node.clock import Clock
from tidelog.node.metadata.metadata_log import MetadataLog
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    SnapshotId,
)
from tidelog.protocol.pieces import CurrentLeader, NodeEndpoint
from tidelog.replication.divergence import diverging
from tidelog.replication.quorum.events import QuorumEvent, ReplicaFetched
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.roles import Leader
from tidelog.replication.quorum.state import ReplicaKey

MAX_BYTES = 8 << 20


class _Parked:
    __slots__ = ("fetch", "message", "resume", "timer")

    def __init__(self, message: FetchRequest, fetch: FetchPartition, resume: Resume) -> None:
        self.message = message
        self.fetch = fetch
        self.resume = resume
        self.timer: Timer | None = None


class QuorumServing:
    def __init__(
        self,
        machine: QuorumMachine,
        log: MetadataLog,
        clock: Clock,
        network: QuorumNetwork,
    ) -> None:
        self._machine = machine
        self._log = log
        self._clock = clock
        self._timers = clock.timers
        self._network = network
        self._parked: dict[_Parked, None] = {}

    def proof(self, message: FetchRequest) -> QuorumEvent | None:
        """The follower's progress, for the quorum machine; None if the fetch proves nothing.

        A fetch proves progress only if this node leads and the two logs agree.
        """
        fetch = _only_fetch(message)
        if fetch is None or self._refuse(message, fetch) is not None:
            return None
        if self._needs_snapshot(fetch) or self._divergence_of(fetch) is not None:
            return None
        replica = ReplicaKey(message.replica_id, fetch.replica_directory_id)
        return ReplicaFetched(replica, fetch.fetch_offset) if message.replica_id >= 0 else None

    def fetch(self, message: FetchRequest, resume: Resume) -> FetchResponse | Parked:
        fetch = _only_fetch(message)
        if fetch is None:
            return FetchResponse(error=ErrorCode.invalid_request)
        answer = self._attempt(message, fetch)
        if answer is not None or message.max_wait_ms <= 0:
            return answer if answer is not None else self._answer(fetch, empty=True)
        parked = _Parked(message, fetch, resume)
        self._parked[parked] = None
        deadline = self._clock.now + message.max_wait_ms
        parked.timer = self._timers.at(deadline, lambda: self._time_out(parked))
        return PARKED

    def fetch_snapshot(self, message: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """The response with one part of a snapshot, as large as the request allows."""
        asked = next(
            (
                p
                for topic in message.topics
                if topic.name == METADATA_TOPIC
                for p in topic.partitions
            ),
            None,
        )
        if message.cluster_id not in (None, self._network.cluster_id):
            return _no_snapshot(ErrorCode.inconsistent_cluster_id)
        if asked is None:
            return _no_snapshot(ErrorCode.invalid_request)
        error, content, size = ErrorCode.none, b"", 0
        if asked.current_leader_epoch != self._machine.epoch:
            error = ErrorCode.fenced_leader_epoch
        elif not isinstance(self._machine.role, Leader):
            error = ErrorCode.not_leader_or_follower
        else:
            wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
            length = max(0, min(message.max_bytes, MAX_BYTES))
            part = self._log.snapshots.read(wanted, asked.position, length)
            if part is None:
                error = ErrorCode.snapshot_not_found
            elif not 0 <= asked.position < part[1]:
                error = ErrorCode.position_out_of_range
            else:
                content, size = part
        leader = snapshot_response.LeaderIdAndEpoch(
            leader_id=self._machine.leader, leader_epoch=self._machine.epoch
        )
        partition = snapshot_response.PartitionSnapshot(
            index=0,
            error_code=error,
            snapshot_id=snapshot_response.SnapshotId(
                end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
            ),
            current_leader=leader,
            size=size,
            position=asked.position,
            unaligned_records=content,
        )
        topic = snapshot_response.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
        return FetchSnapshotResponse(
            throttle_time=timedelta(0), error_code=ErrorCode.none, topics=(topic,)
        )

    def wake(self) -> None:
        """Try parked fetches again, because the log, high watermark or leadership has changed."""
        for parked in list(self._parked):
            answer = self._attempt(parked.message, parked.fetch)
            if answer is not None:
                self._finish(parked, answer)

    # -- one fetch ---------------------------------------------------------------------------------

    def _attempt(self, message: FetchRequest, fetch: FetchPartition) -> FetchResponse | None:
        """The response to a fetch; None if there is nothing new and the fetch must wait."""
        refused = self._refuse(message, fetch)
        if refused is not None:
            return _whole(refused, self._endpoints())
        if self._needs_snapshot(fetch):
            return _whole(self._fetched()._replace(snapshot_id=self._log.snapshots.newest))
        divergence = self._divergence_of(fetch)
        if divergence is not None:
            return _whole(self._fetched(diverging_epoch=divergence))
        if fetch.fetch_offset < self._log.log.log_end_offset:
            return self._answer(fetch, empty=False)
        if fetch.high_watermark < self._high_watermark:
            return self._answer(fetch, empty=True)
        return None

    def _refuse(self, message: FetchRequest, fetch: FetchPartition) -> PartitionFetched | None:
        if message.cluster_id not in (None, self._network.cluster_id):
            return PartitionFetched(0, ErrorCode.inconsistent_cluster_id)
        epoch, asked = self._machine.epoch, fetch.current_leader_epoch
        if 0 <= asked < epoch:
            return self._fetched(ErrorCode.fenced_leader_epoch)
        if asked > epoch:
            return self._fetched(ErrorCode.unknown_leader_epoch)
        if not isinstance(self._machine.role, Leader):
            return self._fetched(ErrorCode.not_leader_or_follower)
        return None

    def _needs_snapshot(self, fetch: FetchPartition) -> bool:
        """Whether the next records for this replica are only in a snapshot."""
        return fetch.fetch_offset < self._log.log.log_start_offset

    def _divergence_of(self, fetch: FetchPartition) -> EpochEnd | None:
        log = self._log.log
        mine = log.epoch_end(fetch.last_fetched_epoch)
        return diverging(mine, fetch.last_fetched_epoch, fetch.fetch_offset, log.log_start_offset)

    def _answer(self, fetch: FetchPartition, *, empty: bool) -> FetchResponse:
        log, records = self._log.log, None
        if not empty:
            found = log.read(
                fetch.fetch_offset,
                min(fetch.max_bytes, MAX_BYTES),
                log.log_end_offset,
                at_least_one=True,
            )
            if isinstance(found, ErrorCode):
                return _whole(self._fetched(found))
            records = found.slice
        return _whole(self._fetched()._replace(records=records))

    def _fetched(
        self, error: ErrorCode = ErrorCode.none, diverging_epoch: EpochEnd | None = None
    ) -> PartitionFetched:
        return PartitionFetched(
            0,
            error,
            self._high_watermark,
            self._high_watermark,
            self._log.log.log_start_offset,
            diverging_epoch=diverging_epoch,
            current_leader=CurrentLeader(self._machine.leader, self._machine.epoch),
        )

    @property
    def _high_watermark(self) -> Offset:
        role = self._machine.role
        return role.high_watermark if isinstance(role, Leader) else -1

    def _endpoints(self) -> list[NodeEndpoint]:
        leader = self._machine.leader
        address = None if leader == NO_NODE else self._network.address(leader)
        return [] if address is None else [NodeEndpoint(leader, *address)]

    def _time_out(self, parked: _Parked) -> None:
        answer = self._attempt(parked.message, parked.fetch)
        self._finish(parked, answer or self._answer(parked.fetch, empty=True))

    def _finish(self, parked: _Parked, answer: FetchResponse) -> None:
        if self._parked.pop(parked, parked) is None:
            if parked.timer is not None:
                parked.timer.cancel()
            parked.resume(answer)


def _no_snapshot(error: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(throttle_time=timedelta(0), error_code=error, topics=())


def _only_fetch(message: FetchRequest) -> FetchPartition | None:
    for topic, fetches in message.topics:
        if topic == METADATA_TOPIC_ID:
            for fetch in fetches:
                if fetch.partition == 0:
                    return fetch
    return None


def _whole(fetched: PartitionFetched, endpoints: list[NodeEndpoint] | None = None) -> FetchResponse:
    return FetchResponse([(METADATA_TOPIC_ID, [fetched])], node_endpoints=endpoints or ())
