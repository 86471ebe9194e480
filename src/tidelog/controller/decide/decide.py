"""The controller's decisions: pure functions from an image and a request to records and a response.

Decisions are made one at a time on the pending image, which includes the records of all earlier
decisions, committed or not. The response is sent when the records of the decision are committed. A
refused request produces no records and is answered when all earlier decisions are committed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
)
from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.controller_registration.v0.request import ControllerRegistrationRequest
from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.update_features.v2.request import UpdateFeaturesRequest

from tidelog.controller.configs.change import alter_configs, incremental_alter_configs
from tidelog.controller.decide.acls import create_acls, delete_acls
from tidelog.controller.decide.alter_partition import alter_partition
from tidelog.controller.decide.brokers import (
    heartbeat,
    register_broker,
    register_controller,
    unregister_broker,
)
from tidelog.controller.decide.create_partitions import create_partitions
from tidelog.controller.decide.decision import DecideContext, Decision
from tidelog.controller.decide.directory_assignment import assign_replicas_to_dirs
from tidelog.controller.decide.elect_leaders import elect_leaders
from tidelog.controller.decide.feature_update import update_features
from tidelog.controller.decide.producer_ids import allocate_producer_ids
from tidelog.controller.decide.reassignments import alter_partition_reassignments
from tidelog.controller.decide.scram_credentials import alter_user_scram_credentials
from tidelog.controller.decide.topics import create_topics, delete_topics
from tidelog.controller.image.image import ClusterImage
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

__all__ = ["DecideContext", "Decision", "decide"]

_DECIDERS: Mapping[type, Callable[[ClusterImage, Any, DecideContext], Decision]] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    AlterConfigsRequest: alter_configs,
    AllocateProducerIdsRequest: allocate_producer_ids,
    BrokerRegistrationRequest: register_broker,
    BrokerHeartbeatRequest: heartbeat,
    UnregisterBrokerRequest: unregister_broker,
    ControllerRegistrationRequest: register_controller,
    AlterPartitionRequest: alter_partition,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    ElectLeadersRequest: elect_leaders,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments,
    UpdateFeaturesRequest: update_features,
    AlterUserScramCredentialsRequest: alter_user_scram_credentials,
    CreateAclsRequest: create_acls,
    DeleteAclsRequest: delete_acls,
}


def decide(image: ClusterImage, request: Any, context: DecideContext) -> Decision:
    """Decide on a request, which must be in the newest version of its message."""
    return _DECIDERS[type(request)](image, request, context)
