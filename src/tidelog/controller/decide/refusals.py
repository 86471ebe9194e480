"""The error responses to requests that no active controller has decided on."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import partial, singledispatch
from typing import Any

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest
from kio.schema.add_raft_voter.v1.response import AddRaftVoterResponse
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.alter_configs.v2 import response as alter
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse
from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse
from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.incremental_alter_configs.v1 import response as incremental
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.schema.remove_raft_voter.v0.response import RemoveRaftVoterResponse
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.schema.update_features.v2.request import UpdateFeaturesRequest
from kio.schema.update_features.v2.response import UpdateFeaturesResponse
from kio.schema.update_raft_voter.v0.request import UpdateRaftVoterRequest
from kio.schema.update_raft_voter.v0.response import CurrentLeader, UpdateRaftVoterResponse

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

_NOW = timedelta(0)
_FROM_THE_QUORUM = (AddRaftVoterResponse, RemoveRaftVoterResponse, UpdateRaftVoterResponse)
_NO_CONTROLLER = (
    "No active controller could be reached in time. Is a majority of the controllers running?"
)
_NOT_CONTROLLER = "This is not the correct controller for this cluster."


def _text(error: ErrorCode) -> str:
    return _NOT_CONTROLLER if error is ErrorCode.not_controller else _NO_CONTROLLER


def is_refused_by_a_non_controller(response: Any) -> bool:
    """Whether the response, or an item in it, shows that no active controller has answered."""
    if isinstance(response, DescribeQuorumResponse):
        return _is_refused_by_a_follower(response)
    if isinstance(response, _FROM_THE_QUORUM):
        return response.error_code is ErrorCode.not_leader_or_follower
    if getattr(response, "error_code", None) is ErrorCode.not_controller:
        return True
    if not is_dataclass(response):
        return False
    return any(
        getattr(item, "error_code", None) is ErrorCode.not_controller
        for field in fields(response)
        if isinstance(value := getattr(response, field.name), tuple)
        for item in value
    )


def _is_refused_by_a_follower(response: DescribeQuorumResponse) -> bool:
    return any(
        partition.error_code is ErrorCode.not_leader_or_follower
        for topic in response.topics
        for partition in topic.partitions
    )


_ERROR_ONLY: Mapping[type, Callable[..., Any]] = {
    AllocateProducerIdsRequest: partial(
        AllocateProducerIdsResponse, throttle_time=_NOW, producer_id_start=-1, producer_id_len=0
    ),
    AlterPartitionRequest: partial(AlterPartitionResponse, throttle_time=_NOW, topics=()),
    AssignReplicasToDirsRequest: partial(
        AssignReplicasToDirsResponse, throttle_time=_NOW, directories=()
    ),
    BrokerHeartbeatRequest: partial(
        BrokerHeartbeatResponse, throttle_time=_NOW, should_shut_down=False
    ),
    BrokerRegistrationRequest: partial(BrokerRegistrationResponse, throttle_time=_NOW),
    ElectLeadersRequest: partial(
        ElectLeadersResponse, throttle_time=_NOW, replica_election_results=()
    ),
    UpdateRaftVoterRequest: partial(
        UpdateRaftVoterResponse,
        throttle_time=_NOW,
        current_leader=CurrentLeader(host="", port=0),
    ),
}
"""Responses with an error code and no message."""

_ERROR_AND_MESSAGE: Mapping[type, Callable[..., Any]] = {
    AddRaftVoterRequest: partial(AddRaftVoterResponse, throttle_time=_NOW),
    AlterPartitionReassignmentsRequest: partial(
        AlterPartitionReassignmentsResponse, throttle_time=_NOW, responses=()
    ),
    ControllerRegistrationRequest: partial(ControllerRegistrationResponse, throttle_time=_NOW),
    DescribeQuorumRequest: partial(DescribeQuorumResponse, topics=(), nodes=()),
    ListPartitionReassignmentsRequest: partial(
        ListPartitionReassignmentsResponse, throttle_time=_NOW, topics=()
    ),
    RemoveRaftVoterRequest: partial(RemoveRaftVoterResponse, throttle_time=_NOW),
    UnregisterBrokerRequest: partial(UnregisterBrokerResponse, throttle_time=_NOW),
    UpdateFeaturesRequest: partial(UpdateFeaturesResponse, throttle_time=_NOW),
}


@singledispatch
def refusal(request: Any, error: ErrorCode) -> Any:
    """The response to a request that no controller has decided on."""
    kind = type(request)
    if kind in _ERROR_ONLY:
        return _ERROR_ONLY[kind](error_code=error)
    if kind in _ERROR_AND_MESSAGE:
        return _ERROR_AND_MESSAGE[kind](error_code=error, error_message=_text(error))
    raise AssertionError(f"not a request to the controller: {kind}")


@refusal.register
def _(request: CreateTopicsRequest, error: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        throttle_time=_NOW,
        topics=tuple(
            CreatableTopicResult(
                name=topic.name,
                topic_id=None,
                error_code=error,
                error_message=_text(error),
                configs=None,
            )
            for topic in request.topics
        ),
    )


@refusal.register
def _(request: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time=_NOW,
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error,
                error_message=_text(error),
            )
            for topic in request.topics
        ),
    )


@refusal.register
def _(request: CreatePartitionsRequest, error: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        throttle_time=_NOW,
        results=tuple(
            CreatePartitionsTopicResult(
                name=topic.name, error_code=error, error_message=_text(error)
            )
            for topic in request.topics
        ),
    )


@refusal.register
def _(
    request: IncrementalAlterConfigsRequest, error: ErrorCode
) -> incremental.IncrementalAlterConfigsResponse:
    return incremental.IncrementalAlterConfigsResponse(
        throttle_time=_NOW,
        responses=tuple(
            incremental.AlterConfigsResourceResponse(
                error_code=error,
                error_message=_text(error),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ),
    )


@refusal.register
def _(request: AlterConfigsRequest, error: ErrorCode) -> alter.AlterConfigsResponse:
    return alter.AlterConfigsResponse(
        throttle_time=_NOW,
        responses=tuple(
            alter.AlterConfigsResourceResponse(
                error_code=error,
                error_message=_text(error),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ),
    )


@refusal.register
def _(request: CreateAclsRequest, error: ErrorCode) -> CreateAclsResponse:
    result = AclCreationResult(error_code=error, error_message=_text(error))
    return CreateAclsResponse(throttle_time=_NOW, results=(result,) * len(request.creations))


@refusal.register
def _(request: DeleteAclsRequest, error: ErrorCode) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=error, error_message=_text(error), matching_acls=())
    return DeleteAclsResponse(throttle_time=_NOW, filter_results=(result,) * len(request.filters))


@refusal.register
def _(
    request: AlterUserScramCredentialsRequest, error: ErrorCode
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys([one.name for one in request.deletions])
    names |= dict.fromkeys([one.name for one in request.upsertions])
    return AlterUserScramCredentialsResponse(
        throttle_time=_NOW,
        results=tuple(
            AlterUserScramCredentialsResult(user=name, error_code=error, error_message=_text(error))
            for name in names
        ),
    )
