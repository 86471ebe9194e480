"""Sends requests about share partitions to the share coordinator, wherever it is.

A request is retried until its deadline if the share coordinator is unknown, loading or moving. All
of its requests can be repeated without harm.
"""

from collections.abc import Callable
from typing import Any

from kio.schema.read_share_group_state.v0 import request as read
from kio.schema.write_share_group_state.v1 import request as write

from tidelog.coordination.delivery.stored_state import StateBatch, StateWrite, StoredState
from tidelog.coordination.groups.share.share_initialization import coordinator_key
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC, SharePartitionKey
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, NodeId
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Peers, Unanswered, coded

PATIENCE_MS: Millis = 30_000
RETRY_MS: Millis = 50
LONGEST_RETRY_MS: Millis = 1_000
ANSWER_MS: Millis = 10_000

_RETRIED = (
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
)
_READ_VERSION, _WRITE_VERSION = 0, 1


class ShareStateClient:
    def __init__(self, listener: str, clock: Clock, peers: Peers, current: CurrentImage) -> None:
        self._listener = listener
        self._clock = clock
        self._timers = clock.timers
        self._channels: Channels[NodeId] = Channels(peers)
        self._current = current

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: LeaderEpoch,
        done: Callable[[StoredState | ErrorCode], None],
    ) -> None:
        """Read the state of a share partition, and fence its earlier leaders."""
        data = read.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
        topics = (read.ReadStateData(topic_id=key.topic_id, partitions=(data,)),)
        message = read.ReadShareGroupStateRequest(group_id=key.group, topics=topics)

        def answered(result: Any) -> None:
            if isinstance(result, ErrorCode):
                done(result)
                return
            batches = tuple(
                StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
                for b in result.state_batches
            )
            done(StoredState(result.start_offset, result.state_epoch, batches))

        self._try(_Question(key, message, _READ_VERSION, answered, self._deadline()))

    def write(
        self, key: SharePartitionKey, change: StateWrite, done: Callable[[ErrorCode], None]
    ) -> None:
        batches = tuple(
            write.StateBatch(
                first_offset=batch.first,
                last_offset=batch.last,
                delivery_state=batch.state,
                delivery_count=batch.delivery_count,
            )
            for batch in change.batches
        )
        data = write.PartitionData(
            partition=key.partition,
            state_epoch=change.state_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=batches,
        )
        topics = (write.WriteStateData(topic_id=key.topic_id, partitions=(data,)),)
        message = write.WriteShareGroupStateRequest(group_id=key.group, topics=topics)

        def answered(result: Any) -> None:
            done(result if isinstance(result, ErrorCode) else ErrorCode.none)

        self._try(_Question(key, message, _WRITE_VERSION, answered, self._deadline()))

    def _deadline(self) -> Millis:
        return self._clock.now + PATIENCE_MS

    def _try(self, question: "_Question") -> None:
        broker = self._coordinator(question.key)
        endpoint = None
        if broker is not None:
            endpoint = broker_endpoint(self._current.image, broker, self._listener)
        if broker is None or endpoint is None:
            self._again(question)
            return

        def answered(response: Any) -> None:
            if isinstance(response, Unanswered):
                self._again(question)
                return
            result = response.results[0].partitions[0]
            if result.error_code in _RETRIED:
                self._again(question)
            elif result.error_code is not ErrorCode.none:
                question.done(ErrorCode(result.error_code))
            else:
                question.done(result)

        encode, decode = coded(question.message, question.version)
        channel = self._channels.get(broker, (endpoint.host, endpoint.port))
        channel.request(encode, decode, answered, ANSWER_MS)

    def _again(self, question: "_Question") -> None:
        now = self._clock.now
        if now >= question.deadline:
            question.done(ErrorCode.coordinator_not_available)
            return
        delay = min(RETRY_MS << min(question.attempts, 10), LONGEST_RETRY_MS)
        question.attempts += 1
        self._timers.at(now + delay, lambda: self._try(question))

    def _coordinator(self, key: SharePartitionKey) -> NodeId | None:
        topic = self._current.image.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return None
        index = partition_for(coordinator_key(*key), len(topic.partitions))
        leader = topic.partitions[index].leader
        return leader if leader >= 0 else None


class _Question:
    __slots__ = ("attempts", "deadline", "done", "key", "message", "version")

    def __init__(
        self,
        key: SharePartitionKey,
        message: Any,
        version: int,
        done: Callable[[Any], None],
        deadline: Millis,
    ) -> None:
        self.key = key
        self.message = message
        self.version = version
        self.done = done
        """Gets the result of the only partition, or an error."""
        self.deadline = deadline
        self.attempts = 0
