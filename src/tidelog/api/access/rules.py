"""The access rule of each Kafka API: the operations that a client needs, on which resources.

Invariant: an API without a rule cannot be registered (F85). The table has a rule for every API of
Kafka 4.3 that a node can serve, so that a new API is registered together with Kafka's own rule.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.api.access import special_guards as special
from tidelog.api.access.guards import (
    Guard,
    any_of_names,
    both,
    checked_by_handler,
    cluster,
    each,
    nothing_needed,
    unless,
    whole,
)
from tidelog.security.acls import AclOperation, AclResource


class Need(NamedTuple):
    operation: AclOperation
    resource: AclResource

    def __str__(self) -> str:
        operation, resource = self.operation.name, self.resource.name
        return f"{_words(operation)} {_words(resource)}"


class AccessRule(NamedTuple):
    needs: tuple[Need, ...]
    """The operations that are checked; which of them apply depends on the request."""
    guard: Guard
    """Checks the operations, if an authorizer is configured."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.needs)) or "nothing"


def _words(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


_TOPIC, _GROUP, _CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
_TRANSACTION, _TOKEN = AclResource.TRANSACTIONAL_ID, AclResource.DELEGATION_TOKEN

_READ, _WRITE = AclOperation.READ, AclOperation.WRITE
_CREATE, _DELETE, _ALTER = AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER
_DESCRIBE, _ACTION = AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS


def _rule(guard: Guard, *needs: tuple[AclOperation, AclResource]) -> AccessRule:
    return AccessRule(tuple(Need(*need) for need in needs), guard)


def _on_cluster(operation: AclOperation, asked: str = "", answered: str = "") -> AccessRule:
    return _rule(cluster(operation, asked, answered), (operation, _CLUSTER))


def _on_group(operation: AclOperation) -> AccessRule:
    return _rule(whole(operation, _GROUP, "group_id"), (operation, _GROUP))


def _on_topics(
    operation: AclOperation, asked: str = "topics", answered: str = "topics"
) -> AccessRule:
    return _rule(each(operation, _TOPIC, asked, answered), (operation, _TOPIC))


def _consume(answered: str, asked: str = "", group_answered: str = "") -> AccessRule:
    """Read on the group, and on each topic."""
    group = whole(_READ, _GROUP, "group_id", asked, group_answered)
    topics = each(_READ, _TOPIC, "topics", answered)
    return _rule(both(group, topics), (_READ, _GROUP), (_READ, _TOPIC))


NOTHING = _rule(nothing_needed)
BROKERS_ONLY = _on_cluster(_ACTION)
_READ_GROUP = _on_group(_READ)
_SUBSCRIBE = _rule(
    both(whole(_READ, _GROUP, "group_id"), any_of_names(_DESCRIBE, "subscribed_topic_names")),
    (_READ, _GROUP),
    (_DESCRIBE, _TOPIC),
)
_DESCRIBE_MEMBERS = _rule(special.describe_members, (_DESCRIBE, _GROUP), (_DESCRIBE, _TOPIC))
_DELETE_OFFSETS = _rule(
    both(whole(_DELETE, _GROUP, "group_id"), each(_READ, _TOPIC, "topics", "topics")),
    (_DELETE, _GROUP),
    (_READ, _TOPIC),
)


def _configs(operation: AclOperation, answered: str) -> AccessRule:
    kinds = (_TOPIC, _CLUSTER, _GROUP)
    return _rule(special.configs(operation, answered), *((operation, kind) for kind in kinds))


RULES: Mapping[str, AccessRule] = {
    # Records
    "Produce": _rule(checked_by_handler, (_WRITE, _TOPIC), (_WRITE, _TRANSACTION)),
    "Fetch": _rule(checked_by_handler, (_READ, _TOPIC), (_ACTION, _CLUSTER)),
    "ListOffsets": _on_topics(_DESCRIBE),
    "OffsetForLeaderEpoch": _rule(
        unless(_ACTION, each(_DESCRIBE, _TOPIC, "topics", "topics")),
        (_DESCRIBE, _TOPIC),
        (_ACTION, _CLUSTER),
    ),
    "DeleteRecords": _on_topics(_DELETE),
    "DescribeProducers": _on_topics(_READ),
    # Transactions
    "InitProducerId": _rule(
        special.init_producer_id,
        (_WRITE, _TRANSACTION),
        (AclOperation.TWO_PHASE_COMMIT, _TRANSACTION),
        (AclOperation.IDEMPOTENT_WRITE, _CLUSTER),
        (_WRITE, _TOPIC),
    ),
    "AddPartitionsToTxn": _rule(
        special.add_partitions_to_txn, (_WRITE, _TRANSACTION), (_WRITE, _TOPIC), (_ACTION, _CLUSTER)
    ),
    "AddOffsetsToTxn": _rule(
        both(
            whole(_WRITE, _TRANSACTION, "transactional_id"),
            whole(_READ, _GROUP, "group_id"),
        ),
        (_WRITE, _TRANSACTION),
        (_READ, _GROUP),
    ),
    "EndTxn": _rule(whole(_WRITE, _TRANSACTION, "transactional_id"), (_WRITE, _TRANSACTION)),
    "WriteTxnMarkers": _rule(
        unless(_ALTER, cluster(_ACTION, "markers", "markers")),
        (_ACTION, _CLUSTER),
        (_ALTER, _CLUSTER),
    ),
    "TxnOffsetCommit": _rule(
        both(
            whole(_WRITE, _TRANSACTION, "transactional_id", "topics", "topics"),
            both(
                whole(_READ, _GROUP, "group_id", "topics", "topics"),
                each(_READ, _TOPIC, "topics", "topics"),
            ),
        ),
        (_WRITE, _TRANSACTION),
        (_READ, _GROUP),
        (_READ, _TOPIC),
    ),
    "DescribeTransactions": _rule(
        special.describe_transactions, (_DESCRIBE, _TRANSACTION), (_DESCRIBE, _TOPIC)
    ),
    "ListTransactions": _rule(special.list_transactions, (_DESCRIBE, _TRANSACTION)),
    # Groups
    "FindCoordinator": _rule(
        special.find_coordinator,
        (_DESCRIBE, _GROUP),
        (_DESCRIBE, _TRANSACTION),
        (_ACTION, _CLUSTER),
    ),
    "OffsetCommit": _consume("topics", "topics", "topics"),
    "OffsetFetch": _rule(special.offset_fetch, (_DESCRIBE, _GROUP), (_DESCRIBE, _TOPIC)),
    "OffsetDelete": _DELETE_OFFSETS,
    "JoinGroup": _READ_GROUP,
    "Heartbeat": _READ_GROUP,
    "LeaveGroup": _READ_GROUP,
    "SyncGroup": _READ_GROUP,
    "DescribeGroups": _rule(each(_DESCRIBE, _GROUP, "groups", "groups"), (_DESCRIBE, _GROUP)),
    "ListGroups": _rule(special.list_groups, (_DESCRIBE, _CLUSTER), (_DESCRIBE, _GROUP)),
    "DeleteGroups": _rule(each(_DELETE, _GROUP, "groups_names", "results"), (_DELETE, _GROUP)),
    "ConsumerGroupHeartbeat": _SUBSCRIBE,
    "ConsumerGroupDescribe": _DESCRIBE_MEMBERS,
    "StreamsGroupHeartbeat": _rule(special.streams_heartbeat, (_READ, _GROUP), (_DESCRIBE, _TOPIC)),
    "StreamsGroupDescribe": _DESCRIBE_MEMBERS,
    "ShareGroupHeartbeat": _SUBSCRIBE,
    "ShareGroupDescribe": _DESCRIBE_MEMBERS,
    "ShareFetch": _consume("responses"),
    "ShareAcknowledge": _consume("responses"),
    "DescribeShareGroupOffsets": _rule(
        special.share_offsets(_DESCRIBE), (_DESCRIBE, _GROUP), (_DESCRIBE, _TOPIC)
    ),
    "AlterShareGroupOffsets": _consume("responses"),
    "DeleteShareGroupOffsets": _rule(
        both(whole(_DELETE, _GROUP, "group_id"), each(_READ, _TOPIC, "topics", "responses")),
        (_DELETE, _GROUP),
        (_READ, _TOPIC),
    ),
    "InitializeShareGroupState": _on_cluster(_ACTION, "topics", "results"),
    "ReadShareGroupState": _on_cluster(_ACTION, "topics", "results"),
    "WriteShareGroupState": _on_cluster(_ACTION, "topics", "results"),
    "DeleteShareGroupState": _on_cluster(_ACTION, "topics", "results"),
    "ReadShareGroupStateSummary": _on_cluster(_ACTION, "topics", "results"),
    # Topics and configurations
    "Metadata": _rule(
        checked_by_handler, (_DESCRIBE, _TOPIC), (_CREATE, _TOPIC), (_CREATE, _CLUSTER)
    ),
    "DescribeTopicPartitions": _rule(checked_by_handler, (_DESCRIBE, _TOPIC)),
    "CreateTopics": _rule(
        special.create_topics, (_CREATE, _CLUSTER), (_CREATE, _TOPIC), (_DESCRIBE_CONFIGS, _TOPIC)
    ),
    "DeleteTopics": _rule(
        special.delete_topics, (_DELETE, _TOPIC), (_DESCRIBE, _TOPIC), (_DELETE, _CLUSTER)
    ),
    "CreatePartitions": _on_topics(_ALTER, "topics", "results"),
    "DescribeConfigs": _configs(_DESCRIBE_CONFIGS, "results"),
    "AlterConfigs": _configs(_ALTER_CONFIGS, "responses"),
    "IncrementalAlterConfigs": _configs(_ALTER_CONFIGS, "responses"),
    "ListConfigResources": _on_cluster(_DESCRIBE_CONFIGS),
    "ElectLeaders": _on_cluster(_ALTER),
    "AlterPartitionReassignments": _on_cluster(_ALTER),
    "ListPartitionReassignments": _on_cluster(_DESCRIBE),
    "AlterReplicaLogDirs": _rule(special.alter_replica_log_dirs, (_ALTER, _CLUSTER)),
    "DescribeLogDirs": _on_cluster(_DESCRIBE),
    # The cluster
    "ApiVersions": NOTHING,
    "GetTelemetrySubscriptions": NOTHING,
    "PushTelemetry": NOTHING,
    "DescribeCluster": _rule(checked_by_handler, (_DESCRIBE, _CLUSTER), (_ALTER, _CLUSTER)),
    "UpdateFeatures": _on_cluster(_ALTER),
    "UnregisterBroker": _on_cluster(_ALTER),
    "DescribeQuorum": _on_cluster(_DESCRIBE),
    "AddRaftVoter": _on_cluster(_ALTER),
    "RemoveRaftVoter": _on_cluster(_ALTER),
    # Security and quotas
    "SaslHandshake": NOTHING,
    "SaslAuthenticate": NOTHING,
    "DescribeAcls": _on_cluster(_DESCRIBE),
    "CreateAcls": _on_cluster(_ALTER, "creations", "results"),
    "DeleteAcls": _on_cluster(_ALTER, "filters", "filter_results"),
    "DescribeUserScramCredentials": _on_cluster(_DESCRIBE),
    "AlterUserScramCredentials": _rule(special.alter_scram_credentials, (_ALTER, _CLUSTER)),
    "CreateDelegationToken": _rule(
        special.create_token, (AclOperation.CREATE_TOKENS, AclResource.USER)
    ),
    "RenewDelegationToken": NOTHING,
    "ExpireDelegationToken": NOTHING,
    "DescribeDelegationToken": _rule(
        checked_by_handler,
        (_DESCRIBE, _TOKEN),
        (AclOperation.DESCRIBE_TOKENS, AclResource.USER),
    ),
    "DescribeClientQuotas": _on_cluster(_DESCRIBE_CONFIGS),
    "AlterClientQuotas": _on_cluster(_ALTER_CONFIGS, "entries", "entries"),
    # Between the nodes of a cluster
    "Vote": BROKERS_ONLY,
    "BeginQuorumEpoch": BROKERS_ONLY,
    "EndQuorumEpoch": BROKERS_ONLY,
    "FetchSnapshot": BROKERS_ONLY,
    "UpdateRaftVoter": BROKERS_ONLY,
    "AlterPartition": BROKERS_ONLY,
    "Envelope": BROKERS_ONLY,
    "BrokerRegistration": BROKERS_ONLY,
    "BrokerHeartbeat": BROKERS_ONLY,
    "AllocateProducerIds": BROKERS_ONLY,
    "ControllerRegistration": BROKERS_ONLY,
    "AssignReplicasToDirs": BROKERS_ONLY,
}


class MissingRule(LookupError):
    """An API is registered for which this module has no rule."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the API {name} has no access rule; add one to RULES in api/access/rules.py, with the "
            "operations and resources that Kafka checks for it"
        )


def rule_of(name: str) -> AccessRule:
    """The rule of an API; raise MissingRule if there is none."""
    rule = RULES.get(name)
    if rule is None:
        raise MissingRule(name)
    return rule
