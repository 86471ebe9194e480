"""The coordinators of one internal topic: one shard for each partition that this node leads.

Invariant: a shard serves requests only while the node leads its partition in the epoch in which the
shard was loaded. Until it is loaded, requests get COORDINATOR_LOAD_IN_PROGRESS (F71).
"""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from tidelog.api.handler import Request
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.runtime.decision import (
    ClientInfo,
    CoordinatorRequest,
    Instant,
    OutgoingRequest,
    ProducerIdAndEpoch,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.coordination.runtime.shard import CoordinatorShard, ShardOutput
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, Offset, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.coordinators.outgoing import OutgoingRequests
from tidelog.node.coordinators.shard_loading import ShardLoading
from tidelog.node.coordinators.shard_log import ReplicaShardLog
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage, ImageChange
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer

Shard: TypeAlias = CoordinatorShard[Any]


class ShardHost(NamedTuple):
    """The parts of the node that shards use."""

    clock: Clock
    ready: ReadyQueue
    partitions: Partitions
    current: CurrentImage
    jobs: Jobs
    outgoing: OutgoingRequests


class CoordinatorKind(NamedTuple):
    """One kind of coordinator."""

    topic: str
    new_machine: Callable[[Replica], CoordinatorMachine[Any]]
    """Returns an empty machine for a partition that this node has begun to lead."""
    refuse: Callable[[CoordinatorRequest, ErrorCode], Any]
    """The response to a request for which there is no shard."""
    commit_timeout_ms: Millis


class CoordinatorShards:
    def __init__(self, kind: CoordinatorKind, host: ShardHost) -> None:
        self.topic = kind.topic
        self._kind = kind
        self._host = host
        self._clock = host.clock
        self._shards: dict[int, Shard] = {}
        self._loading: dict[int, ShardLoading] = {}
        self._alarms: dict[int, tuple[Millis, Timer]] = {}
        self._waiting: dict[int, Resume] = {}
        self._tickets = count(1)

    # -- beginning and ending leadership -----------------------------------------------------------

    def lead(self, replica: Replica) -> None:
        """Load the coordinator of a partition from its log."""
        index = replica.partition.partition
        self.resign(index)
        machine = self._kind.new_machine(replica)
        image = self._host.current.image
        loading = ShardLoading(replica, machine, self._host.jobs, image, self._loaded)
        self._loading[index] = loading
        loading.begin()

    def _loaded(self, loading: ShardLoading, is_complete: bool) -> None:
        replica = loading.replica
        index = replica.partition.partition
        if self._loading.get(index) is not loading:
            return  # the leadership has ended in the meantime
        del self._loading[index]
        if not is_complete:
            return
        host = self._host

        def reported(error: ErrorCode) -> None:
            if self._shards.get(index) is shard:
                is_committed = error is ErrorCode.none
                at = self._at()
                outputs = shard.committed(at) if is_committed else shard.not_committed(error, at)
                self._carry_out(index, shard, outputs)

        log = ReplicaShardLog(replica, host.partitions, self._clock, host.ready, reported)
        shard = CoordinatorShard(loading.machine, log, loading.end, self._kind.commit_timeout_ms)
        self._shards[index] = shard
        self._carry_out(index, shard, shard.start(loading.image, self._at()))

    def resign(self, index: int) -> None:
        if (loading := self._loading.pop(index, None)) is not None:
            loading.cancel()
        shard = self._shards.pop(index, None)
        if shard is not None:
            if (alarm := self._alarms.pop(index, None)) is not None:
                alarm[1].cancel()
            self._carry_out(index, shard, shard.resign())

    def resign_all(self) -> None:
        for index in (*self._loading, *self._shards):
            self.resign(index)

    def image_changed(self, change: ImageChange) -> None:
        for index, shard in list(self._shards.items()):
            if self._shards.get(index) is shard:
                self._carry_out(index, shard, shard.image_changed(change.old, self._at()))

    # -- requests ----------------------------------------------------------------------------------

    def coordinate(self, key: str, message: Any, resume: Resume, request: Request) -> Any | Parked:
        """Pass a request to the shard of this key, for example of a transactional id."""
        topic = self._host.current.image.topics.get(self.topic)
        index = 0 if topic is None else partition_for(key, len(topic.partitions))
        shard = self._shards.get(index)
        if shard is None:
            error = ErrorCode.not_coordinator
            if index in self._loading:
                error = ErrorCode.coordinator_load_in_progress
            return self._kind.refuse(self._request(message, request), error)
        self._ask(index, shard, message, request, resume)
        return PARKED

    def coordinate_all(self, message: Any, resume: Resume, request: Request) -> list[Any] | Parked:
        """Pass a request to every shard on this node, and collect the responses."""
        refused = self._request(message, request)
        loading = ErrorCode.coordinator_load_in_progress
        answers = [self._kind.refuse(refused, loading) for _ in self._loading]
        shards = list(self._shards.items())
        if not shards:
            return answers
        expected = len(answers) + len(shards)

        def collect(answer: Any) -> None:
            answers.append(answer)
            if len(answers) == expected:
                resume(answers)

        for index, shard in shards:
            self._ask(index, shard, message, request, collect)
        return PARKED

    def _ask(
        self, index: int, shard: Shard, message: Any, request: Request, resume: Resume
    ) -> None:
        asked = self._request(message, request)
        self._waiting[asked.ticket] = resume
        self._carry_out(index, shard, shard.handle(asked, self._at()))

    def _request(self, message: Any, request: Request) -> CoordinatorRequest:
        client = ClientInfo(request.client_id, request.client_host, request.principal)
        return CoordinatorRequest(message, request.version, client, next(self._tickets))

    # -- transactions ------------------------------------------------------------------------------

    def is_loading(self, partition: TopicPartition) -> bool:
        return partition.topic == self.topic and partition.partition in self._loading

    def transaction_ended(
        self,
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        end: Offset,
        *,
        committed: bool,
    ) -> None:
        shard = self._shards.get(partition.partition) if partition.topic == self.topic else None
        if shard is not None:
            shard.transaction_ended(producer, end, committed=committed)

    # -- outputs and time --------------------------------------------------------------------------

    def _carry_out(self, index: int, shard: Shard, outputs: list[ShardOutput]) -> None:
        for output in outputs:
            if isinstance(output, OutgoingRequest):
                self._send(index, shard, output)
            else:
                self._waiting.pop(output.ticket)(output.response)
        self._set_alarm(index)

    def _send(self, index: int, shard: Shard, request: OutgoingRequest) -> None:
        def answered(answer: Any) -> None:
            if self._shards.get(index) is shard:
                self._carry_out(index, shard, shard.answered(request, answer, self._at()))

        self._host.outgoing.send(request, answered)

    def _set_alarm(self, index: int) -> None:
        """Set the shard's timer to its deadline, unless the timer fires earlier anyway."""
        shard = self._shards.get(index)
        deadline = shard.next_deadline() if shard is not None else None
        if deadline is None:
            return
        alarm = self._alarms.get(index)
        if alarm is not None:
            if alarm[0] <= deadline:
                return
            alarm[1].cancel()
        timer = self._clock.timers.at(deadline, lambda: self._tick(index))
        self._alarms[index] = deadline, timer

    def _tick(self, index: int) -> None:
        self._alarms.pop(index, None)
        shard = self._shards.get(index)
        if shard is not None:
            self._carry_out(index, shard, shard.tick(self._at()))

    def _at(self) -> Instant:
        clock = self._clock
        return Instant(
            clock.now, clock.wall, clock.now + clock.settled_ms, self._host.current.image
        )
