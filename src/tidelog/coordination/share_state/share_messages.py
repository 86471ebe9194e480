"""The requests to the share coordinator, one share partition at a time.

A request of the protocol names several share partitions, which may belong to different shards. The
API splits it (`single_partitions`), each shard answers for one share partition, and the API joins
the responses (`joined`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kio.schema.delete_share_group_state.v0 import request as delete_request
from kio.schema.delete_share_group_state.v0 import response as delete_response
from kio.schema.initialize_share_group_state.v0 import request as initialize_request
from kio.schema.initialize_share_group_state.v0 import response as initialize_response
from kio.schema.read_share_group_state.v0 import request as read_request
from kio.schema.read_share_group_state.v0 import response as read_response
from kio.schema.read_share_group_state_summary.v1 import request as summary_request
from kio.schema.read_share_group_state_summary.v1 import response as summary_response
from kio.schema.write_share_group_state.v1 import request as write_request
from kio.schema.write_share_group_state.v1 import response as write_response

from tidelog.coordination.share_state.share_records import NO_COUNT, SharePartitionKey
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, ZERO_TOPIC_ID

InitializeState = initialize_request.InitializeShareGroupStateRequest
ReadState = read_request.ReadShareGroupStateRequest
WriteState = write_request.WriteShareGroupStateRequest
DeleteState = delete_request.DeleteShareGroupStateRequest
ReadSummary = summary_request.ReadShareGroupStateSummaryRequest

StateRequest = InitializeState | ReadState | WriteState | DeleteState | ReadSummary

STATE_REQUESTS: tuple[type[StateRequest], ...] = (
    InitializeState,
    ReadState,
    WriteState,
    DeleteState,
    ReadSummary,
)


class StateError(NamedTuple):
    error: ErrorCode
    message: str | None = None


def single_partitions(request: Any) -> Iterator[Any]:
    """The request as one request for each share partition."""
    for topic in request.topics:
        for partition in topic.partitions:
            yield replace(request, topics=(replace(topic, partitions=(partition,)),))


def joined(responses: Iterable[Any], empty: Any) -> Any:
    """One response with the results of all; `empty` if there are none."""
    results: dict[Any, Any] = {}
    response = empty
    for response in responses:
        for result in response.results:
            known = results.get(result.topic_id)
            if known is not None:
                result = replace(known, partitions=(*known.partitions, *result.partitions))
            results[result.topic_id] = result
    return replace(response, results=tuple(results.values()))


def partition_of(request: Any) -> Any:
    """The only share partition of a request."""
    return request.topics[0].partitions[0]


def key_of(request: Any) -> SharePartitionKey:
    topic = request.topics[0]
    topic_id = ZERO_TOPIC_ID if topic.topic_id is None else topic.topic_id
    return SharePartitionKey(request.group_id, topic_id, topic.partitions[0].partition)


def refused(request: Any, error: ErrorCode, message: str | None = None) -> Any:
    """The response to a request for one share partition that fails."""
    topic_id, partition = request.topics[0].topic_id, partition_of(request).partition
    known = {"partition": partition, "error_code": error, "error_message": message}
    match request:
        case InitializeState():
            initialized = initialize_response.PartitionResult(**known)
            return _initialize_response(topic_id, initialized)
        case WriteState():
            return _write_response(topic_id, write_response.PartitionResult(**known))
        case DeleteState():
            return _delete_response(topic_id, delete_response.PartitionResult(**known))
        case ReadSummary():
            summary = summary_response.PartitionResult(
                **known, state_epoch=0, leader_epoch=0, start_offset=0
            )
            return summary_of(topic_id, summary)
        case ReadState():
            state = read_response.PartitionResult(
                **known, state_epoch=0, start_offset=0, state_batches=()
            )
            return state_of(topic_id, state)
    raise AssertionError(request)


def done(request: Any) -> Any:
    """The response to a successful Initialize, Write or Delete."""
    return refused(request, ErrorCode.none)


def empty_response(request: Any) -> Any:
    """The response to a request that names no share partition."""
    match request:
        case InitializeState():
            return initialize_response.InitializeShareGroupStateResponse(results=())
        case WriteState():
            return write_response.WriteShareGroupStateResponse(results=())
        case DeleteState():
            return delete_response.DeleteShareGroupStateResponse(results=())
        case ReadSummary():
            return summary_response.ReadShareGroupStateSummaryResponse(results=())
        case ReadState():
            return read_response.ReadShareGroupStateResponse(results=())
    raise AssertionError(request)


def state_of(topic_id: Any, result: read_response.PartitionResult) -> Any:
    results = (read_response.ReadStateResult(topic_id=topic_id, partitions=(result,)),)
    return read_response.ReadShareGroupStateResponse(results=results)


def summary_of(topic_id: Any, result: summary_response.PartitionResult) -> Any:
    results = (summary_response.ReadStateSummaryResult(topic_id=topic_id, partitions=(result,)),)
    return summary_response.ReadShareGroupStateSummaryResponse(results=results)


def no_summary(request: Any) -> Any:
    """The summary of a share partition without state."""
    result = summary_response.PartitionResult(
        partition=partition_of(request).partition,
        error_code=ErrorCode.none,
        error_message=None,
        state_epoch=0,
        leader_epoch=0,
        start_offset=NO_OFFSET,
        delivery_complete_count=NO_COUNT,
    )
    return summary_of(request.topics[0].topic_id, result)


def _initialize_response(topic_id: Any, result: initialize_response.PartitionResult) -> Any:
    results = (initialize_response.InitializeStateResult(topic_id=topic_id, partitions=(result,)),)
    return initialize_response.InitializeShareGroupStateResponse(results=results)


def _write_response(topic_id: Any, result: write_response.PartitionResult) -> Any:
    results = (write_response.WriteStateResult(topic_id=topic_id, partitions=(result,)),)
    return write_response.WriteShareGroupStateResponse(results=results)


def _delete_response(topic_id: Any, result: delete_response.PartitionResult) -> Any:
    results = (delete_response.DeleteStateResult(topic_id=topic_id, partitions=(result,)),)
    return delete_response.DeleteShareGroupStateResponse(results=results)
