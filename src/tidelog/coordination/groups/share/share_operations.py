"""Operations on the offsets of a share group that need answers of other brokers.

DescribeShareGroupOffsets reads the start of each share partition from the share coordinator and the
end of each partition from its leader. AlterShareGroupOffsets and DeleteShareGroupOffsets change the
state in the share coordinator, of a group without members. Each operation collects its answers and
then responds.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.delete_share_group_state.v0 import request as delete_state
from kio.schema.initialize_share_group_state.v0 import request as initialize_state
from kio.schema.list_offsets.v11 import request as list_offsets
from kio.schema.read_share_group_state_summary.v1 import request as read_summary

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.share.share_initialization import coordinator_key
from tidelog.coordination.groups.share.simple_assignor import SharePartitionId
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.runtime.decision import NoAnswer, OutgoingRequest, ToLeader
from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_NODE, NO_OFFSET, Offset

_LATEST = -1
_SUMMARY_VERSION, _OFFSETS_VERSION, _STATE_VERSION = 1, 8, 0
_UNAVAILABLE = ErrorCode.coordinator_not_available


class OperationStep(NamedTuple):
    """One outgoing request of an operation."""

    ticket: int
    is_end: bool
    """Whether it asks for the end of a partition, not for the share coordinator."""
    share: SharePartitionId


class StepEnded(NamedTuple):
    step: OperationStep
    result: Any
    """The answer about the only partition of the request, or an error."""


@dataclass(slots=True)
class ShareOperation:
    """An operation that waits for answers."""

    ticket: int
    message: Any
    group_id: str
    waits_for: set[OperationStep]
    results: dict[SharePartitionId, Any] = field(default_factory=dict)
    """The result of the share coordinator for each share partition, or an error."""
    ends: dict[SharePartitionId, Offset] = field(default_factory=dict)

    def take(self, ended: StepEnded) -> None:
        self.waits_for.discard(ended.step)
        if ended.step.is_end:
            self.ends[ended.step.share] = ended.result
        else:
            self.results[ended.step.share] = ended.result

    def error_of(self, share: SharePartitionId) -> ErrorCode:
        result = self.results.get(share, ErrorCode.none)
        return result if isinstance(result, ErrorCode) else ErrorCode.none


def step_ended(step: OperationStep, answer: Any | NoAnswer) -> StepEnded:
    """Read the answer to a step."""
    if step.is_end:
        offset = NO_OFFSET
        if not isinstance(answer, NoAnswer):
            found = answer.topics[0].partitions[0]
            offset = found.offset if found.error_code is ErrorCode.none else NO_OFFSET
        return StepEnded(step, offset)
    if isinstance(answer, NoAnswer):
        return StepEnded(step, _UNAVAILABLE)
    result = answer.results[0].partitions[0]
    error = ErrorCode(result.error_code)
    return StepEnded(step, result if error is ErrorCode.none else error)


def ask_summary(
    ticket: int, group_id: str, share: SharePartitionId, image: ClusterImage
) -> OutgoingRequest:
    data = read_summary.PartitionData(partition=share[1], leader_epoch=NO_EPOCH)
    topics = (read_summary.ReadStateSummaryData(topic_id=share[0], partitions=(data,)),)
    message = read_summary.ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)
    return _to_coordinator(ticket, group_id, share, image, message, _SUMMARY_VERSION)


def ask_initialize(
    ticket: int,
    group_id: str,
    share: SharePartitionId,
    image: ClusterImage,
    state_epoch: int,
    start: Offset,
) -> OutgoingRequest:
    data = initialize_state.PartitionData(
        partition=share[1], state_epoch=state_epoch, start_offset=start
    )
    topics = (initialize_state.InitializeStateData(topic_id=share[0], partitions=(data,)),)
    message = initialize_state.InitializeShareGroupStateRequest(group_id=group_id, topics=topics)
    return _to_coordinator(ticket, group_id, share, image, message, _STATE_VERSION)


def ask_delete(
    ticket: int, group_id: str, share: SharePartitionId, image: ClusterImage
) -> OutgoingRequest:
    data = delete_state.PartitionData(partition=share[1])
    topics = (delete_state.DeleteStateData(topic_id=share[0], partitions=(data,)),)
    message = delete_state.DeleteShareGroupStateRequest(group_id=group_id, topics=topics)
    return _to_coordinator(ticket, group_id, share, image, message, _STATE_VERSION)


def ask_end(ticket: int, share: SharePartitionId, image: ClusterImage) -> OutgoingRequest:
    name = image.topic_names[share[0]]
    partition = list_offsets.ListOffsetsPartition(
        partition_index=share[1], current_leader_epoch=NO_EPOCH, timestamp=_LATEST
    )
    message = list_offsets.ListOffsetsRequest(
        replica_id=NO_NODE,
        isolation_level=0,
        topics=(list_offsets.ListOffsetsTopic(name=name, partitions=(partition,)),),
        timeout=timedelta(seconds=10),
    )
    step = OperationStep(ticket, True, share)
    return OutgoingRequest(ToLeader(name, share[1]), message, _OFFSETS_VERSION, step)


def _to_coordinator(
    ticket: int,
    group_id: str,
    share: SharePartitionId,
    image: ClusterImage,
    message: Any,
    version: int,
) -> OutgoingRequest:
    topic = image.topics.get(SHARE_STATE_TOPIC)
    count = 1 if topic is None else len(topic.partitions)
    index = partition_for(coordinator_key(group_id, *share), count)
    step = OperationStep(ticket, False, share)
    return OutgoingRequest(ToLeader(SHARE_STATE_TOPIC, index), message, version, step)
