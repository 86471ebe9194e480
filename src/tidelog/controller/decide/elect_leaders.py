"""ElectLeaders: elect preferred leaders, or, if a partition has no leader, any live replica."""

from collections.abc import Iterator

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.decide.elections import elect
from tidelog.controller.decide.partition_change import Election
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(
    image: ClusterImage, request: ElectLeadersRequest, context: DecideContext
) -> Decision:
    """Elect leaders in the named partitions, or in all partitions that need an election."""
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return Decision((), _unknown_type(image, request))
    records: list[PartitionChangeRecord] = []
    results = _every_topic(image, request)
    for topic, index in _asked(image, request):
        fault = _elect_one(image, topic, index, election, records, context)
        if request.topic_partitions is None and fault.error is ErrorCode.election_not_needed:
            continue
        results[topic].append(
            PartitionResult(partition_id=index, error_code=fault.error, error_message=fault.message)
        )
    return Decision(tuple(records), _response(ErrorCode.none, results))


def _unknown_type(image: ClusterImage, request: ElectLeadersRequest) -> ElectLeadersResponse:
    message = f"Unknown election type {request.election_type}"
    results = _every_topic(image, request)
    for topic, index in _asked(image, request):
        refused = PartitionResult(
            partition_id=index, error_code=ErrorCode.invalid_request, error_message=message
        )
        results[topic].append(refused)
    return _response(ErrorCode.invalid_request, results)


def _every_topic(
    image: ClusterImage, request: ElectLeadersRequest
) -> dict[str, list[PartitionResult]]:
    """An empty list of results for each topic. The response also lists topics without results."""
    asked = request.topic_partitions
    names = image.topics if asked is None else (topic.topic for topic in asked)
    return {name: [] for name in names}


def _asked(image: ClusterImage, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for topic in image.topics.values():
            yield from ((topic.name, index) for index in topic.partitions)
    else:
        for asked in request.topic_partitions:
            yield from ((asked.topic, index) for index in dict.fromkeys(asked.partitions))


def _elect_one(
    image: ClusterImage,
    name: str,
    index: int,
    election: Election,
    records: list[PartitionChangeRecord],
    context: DecideContext,
) -> Refusal:
    topic = image.topics.get(name)
    if topic is None:
        return Refusal(ErrorCode.unknown_topic_or_partition, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        return Refusal(ErrorCode.unknown_topic_or_partition, f"No such partition as {name}-{index}")
    satisfied = (
        partition.leader == partition.preferred_leader
        if election is Election.PREFERRED
        else partition.has_leader
    )
    if satisfied:
        return Refusal(
            ErrorCode.election_not_needed, "Leader election not needed for topic partition."
        )
    record = elect(image, (topic, index, partition), election, context)
    if record is not None:
        records.append(record)
        return NO_FAULT
    if election is Election.PREFERRED:
        return Refusal(
            ErrorCode.preferred_leader_not_available, "The preferred leader was not available."
        )
    return Refusal(
        ErrorCode.eligible_leaders_not_available,
        "Eligible topic partition leaders are not available.",
    )


def _response(error: ErrorCode, results: dict[str, list[PartitionResult]]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time=NOT_THROTTLED,
        error_code=error,
        replica_election_results=tuple(
            ReplicaElectionResult(topic=topic, partition_result=tuple(found))
            for topic, found in results.items()
        ),
    )
