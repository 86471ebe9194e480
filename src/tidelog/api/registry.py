"""The table of Kafka APIs and versions that this broker serves.

ApiVersions, the node's dispatch and docs/protocol.md are derived from this table, so the broker
advertises exactly the APIs that it serves. Each API has an access rule (`api/access/rules.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse

from tidelog.api.access.guards import guarded
from tidelog.api.access.rules import AccessRule, rule_of
from tidelog.api.admin import (
    acls,
    alter_configs,
    config_resources,
    describe_configs,
    features,
    log_dirs,
    reassignments,
    scram_credentials,
    topic_partitions,
    topics,
)
from tidelog.api.cluster import authentication, broker_life, cluster, metadata, quorum, versions
from tidelog.api.cluster.envelope import EnvelopeContent, open_envelope
from tidelog.api.groups import consumer_groups, coordinators, group_offsets, groups
from tidelog.api.handler import Handler, Handling, Request
from tidelog.api.limits import (
    FETCH,
    MEMBER,
    NAMES,
    OFFSETS,
    ONE,
    OPAQUE,
    PARTITIONS,
    RECORDS,
    RequestLimit,
)
from tidelog.api.listeners import ListenerKind, kind_of
from tidelog.api.records import fetch, offsets, produce, producers
from tidelog.api.shares.share_apis import SHARE_APIS
from tidelog.api.slicing import Parts, in_parts
from tidelog.api.transactions import adding, describing, ending, init_producer_id
from tidelog.api.transactions import offsets as txn_offsets
from tidelog.model.outbound import Chunk
from tidelog.protocol import fetch as fetch_codec
from tidelog.protocol import produce as produce_codec
from tidelog.protocol.messages.messages import RequestHeader

_BROKER = frozenset({ListenerKind.BROKER})
_CONTROLLER = frozenset({ListenerKind.CONTROLLER})
_BOTH = frozenset(ListenerKind)


class Codec(NamedTuple):
    """A hand-tuned codec of an API that carries records; other APIs use `protocol.messages`."""

    decode: Callable[[int, memoryview, int, int], Any]
    """(version, frame, position of the body, maximum number of partitions) -> message"""
    encode: Callable[[int, int, Any], list[Chunk]]
    """(version, correlation id, response) -> a complete frame"""


def _encode_produced(version: int, correlation_id: int, response: Any) -> list[Chunk]:
    return [produce_codec.encode_response(version, correlation_id, response)]


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, name, versions and handler."""

    key: int
    name: str
    min_version: int
    max_version: int
    handler: Handler
    limit: RequestLimit
    """The largest request that is accepted."""
    rule: AccessRule
    """The operations that a client needs to be allowed to use."""
    guarded: Handler
    """The handler behind the guard of its rule, which is used if an authorizer is configured."""
    listeners: frozenset[ListenerKind] = _BROKER
    advertised_min_version: int | None = None
    """The lowest version that ApiVersions advertises, if clients expect one that is not served."""
    codec: Codec | None = None
    parts: Parts | None = None
    """How to split a long request; None if requests are short or the handler pauses by itself."""

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def advertisement(self) -> ApiVersion:
        advertised = self.advertised_min_version
        return ApiVersion(
            api_key=self.key,
            min_version=self.min_version if advertised is None else advertised,
            max_version=self.max_version,
        )


def api_versions(request: Request) -> ApiVersionsResponse:
    """Returns the APIs and versions of this listener, and the cluster's features."""
    return versions.answer(request, _ADVERTISED[kind_of(request)])


def envelope(request: Request) -> Handling:
    """Handles a client's request that a broker forwards, with the client's rights."""
    return (yield from open_envelope(request, _find_handler))


def _find_handler(request: Request, header: RequestHeader) -> EnvelopeContent | None:
    is_guarded = request.authorizer is not None
    api = served(ListenerKind.CONTROLLER, is_guarded=is_guarded).get(header.api_key)
    if api is None or not api.supports(header.api_version):
        return None
    return EnvelopeContent(api.handler, api.limit.elements)


def _api(
    key: int,
    name: str,
    lowest: int,
    highest: int,
    handler: Handler,
    limit: RequestLimit,
    *,
    listeners: frozenset[ListenerKind] = _BROKER,
    advertised_lowest: int | None = None,
    codec: Codec | None = None,
    parts: Parts | None = None,
) -> Api:
    rule = rule_of(name)
    checked = guarded(handler, rule.guard)
    return Api(
        key=key,
        name=name,
        min_version=lowest,
        max_version=highest,
        handler=handler if parts is None else in_parts(handler, parts),
        limit=limit,
        rule=rule,
        guarded=checked if parts is None else in_parts(checked, parts),
        listeners=listeners,
        advertised_min_version=advertised_lowest,
        codec=codec,
        parts=parts,
    )


_BY_PARTITION = Parts(("topics", "partitions"), ("topics", "partitions"))
_BY_INDEX = Parts(("topics", "partition_indexes"), ("topics", "partitions"))

_TABLE = (
    _api(
        0,
        "Produce",
        3,
        13,
        produce.handle,
        RECORDS,
        # librdkafka before 2.0 assumes that a broker without Produce 0 lacks compression.
        advertised_lowest=0,
        codec=Codec(produce_codec.decode_request, _encode_produced),
    ),
    _api(
        1,
        "Fetch",
        4,
        18,
        fetch.handle,
        FETCH,
        listeners=_BOTH,
        codec=Codec(fetch_codec.decode_request, fetch_codec.encode_response),
    ),
    _api(2, "ListOffsets", 1, 11, offsets.list_offsets, PARTITIONS, parts=_BY_PARTITION),
    _api(3, "Metadata", 0, 13, metadata.handle, NAMES),
    _api(8, "OffsetCommit", 2, 10, group_offsets.offset_commit, OFFSETS, parts=_BY_PARTITION),
    _api(9, "OffsetFetch", 1, 10, group_offsets.offset_fetch, PARTITIONS),
    _api(
        10,
        "FindCoordinator",
        0,
        6,
        coordinators.handle,
        NAMES,
        parts=Parts(("coordinator_keys",), ("coordinators",)),
    ),
    _api(11, "JoinGroup", 0, 9, groups.join_group, MEMBER),
    _api(12, "Heartbeat", 0, 4, groups.heartbeat, ONE),
    _api(
        13,
        "LeaveGroup",
        0,
        5,
        groups.leave_group,
        NAMES,
        parts=Parts(("members",), ("members",), 100),
    ),
    _api(14, "SyncGroup", 0, 5, groups.sync_group, OPAQUE),
    _api(15, "DescribeGroups", 0, 6, groups.describe_groups, NAMES),
    _api(16, "ListGroups", 0, 5, groups.list_groups, ONE),
    _api(
        versions.KEY,
        "ApiVersions",
        versions.MIN_VERSION,
        versions.MAX_VERSION,
        api_versions,
        ONE,
        listeners=_BOTH,
    ),
    _api(17, "SaslHandshake", 0, 1, authentication.sasl_handshake, ONE, listeners=_BOTH),
    _api(19, "CreateTopics", 2, 7, topics.create_topics, PARTITIONS, listeners=_BOTH),
    _api(
        20,
        "DeleteTopics",
        1,
        6,
        topics.delete_topics,
        NAMES,
        listeners=_BOTH,
        parts=Parts(("topics",), ("responses",), 100),
    ),
    _api(21, "DeleteRecords", 0, 2, offsets.delete_records, PARTITIONS, parts=_BY_PARTITION),
    _api(22, "InitProducerId", 0, 5, init_producer_id.init_producer_id, ONE),
    _api(
        23,
        "OffsetForLeaderEpoch",
        2,
        4,
        offsets.offset_for_leader_epoch,
        PARTITIONS,
        parts=_BY_PARTITION,
    ),
    _api(24, "AddPartitionsToTxn", 0, 5, adding.add_partitions, PARTITIONS, parts=adding.PARTS),
    _api(25, "AddOffsetsToTxn", 0, 4, adding.add_offsets_to_txn, ONE),
    _api(26, "EndTxn", 0, 5, ending.end_txn, ONE),
    _api(27, "WriteTxnMarkers", 1, 2, ending.write_txn_markers, PARTITIONS, parts=ending.PARTS),
    _api(28, "TxnOffsetCommit", 0, 5, txn_offsets.txn_offset_commit, OFFSETS, parts=_BY_PARTITION),
    _api(29, "DescribeAcls", 1, 3, acls.describe_acls, ONE, listeners=_BOTH),
    _api(
        30,
        "CreateAcls",
        1,
        3,
        acls.create_acls,
        NAMES,
        listeners=_BOTH,
        parts=Parts(("creations",), ("results",)),
    ),
    _api(
        31,
        "DeleteAcls",
        1,
        3,
        acls.delete_acls,
        NAMES,
        listeners=_BOTH,
        parts=Parts(("filters",), ("filter_results",)),
    ),
    _api(32, "DescribeConfigs", 1, 4, describe_configs.handle, NAMES, listeners=_BOTH),
    _api(
        33,
        "AlterConfigs",
        0,
        2,
        alter_configs.alter_configs,
        NAMES,
        listeners=_BOTH,
        parts=Parts(("resources",), ("responses",), 50),
    ),
    _api(34, "AlterReplicaLogDirs", 1, 2, log_dirs.alter, PARTITIONS),
    _api(35, "DescribeLogDirs", 1, 5, log_dirs.handle, PARTITIONS),
    _api(36, "SaslAuthenticate", 0, 2, authentication.sasl_authenticate, ONE, listeners=_BOTH),
    _api(37, "CreatePartitions", 0, 3, topics.create_partitions, PARTITIONS, listeners=_BOTH),
    _api(42, "DeleteGroups", 0, 2, groups.delete_groups, NAMES),
    _api(
        43,
        "ElectLeaders",
        0,
        2,
        reassignments.elect_leaders,
        PARTITIONS,
        listeners=_BOTH,
        parts=Parts(
            ("topic_partitions", "partitions"), ("replica_election_results", "partition_result")
        ),
    ),
    _api(
        44,
        "IncrementalAlterConfigs",
        0,
        1,
        alter_configs.incremental_alter_configs,
        NAMES,
        listeners=_BOTH,
        parts=Parts(("resources",), ("responses",), 50),
    ),
    _api(
        45,
        "AlterPartitionReassignments",
        0,
        1,
        reassignments.alter_partition_reassignments,
        PARTITIONS,
        listeners=_BOTH,
        parts=Parts(("topics", "partitions"), ("responses", "partitions")),
    ),
    _api(
        46,
        "ListPartitionReassignments",
        0,
        0,
        reassignments.list_partition_reassignments,
        PARTITIONS,
        listeners=_BOTH,
        parts=_BY_INDEX,
    ),
    _api(47, "OffsetDelete", 0, 0, group_offsets.offset_delete, PARTITIONS, parts=_BY_PARTITION),
    _api(50, "DescribeUserScramCredentials", 0, 0, scram_credentials.describe, NAMES),
    _api(
        51,
        "AlterUserScramCredentials",
        0,
        0,
        scram_credentials.alter,
        NAMES,
        listeners=_BOTH,
    ),
    _api(52, "Vote", 0, 2, quorum.ask, ONE, listeners=_CONTROLLER),
    _api(53, "BeginQuorumEpoch", 0, 1, quorum.ask, ONE, listeners=_CONTROLLER),
    _api(54, "EndQuorumEpoch", 0, 1, quorum.ask, ONE, listeners=_CONTROLLER),
    _api(55, "DescribeQuorum", 0, 2, quorum.describe_quorum, ONE, listeners=_BOTH),
    _api(
        56,
        "AlterPartition",
        2,
        3,
        broker_life.decide,
        PARTITIONS,
        listeners=_CONTROLLER,
        parts=_BY_PARTITION,
    ),
    _api(57, "UpdateFeatures", 0, 2, features.update_features, ONE, listeners=_BOTH),
    _api(58, "Envelope", 0, 0, envelope, OPAQUE, listeners=_CONTROLLER),
    _api(59, "FetchSnapshot", 0, 1, quorum.ask, ONE, listeners=_CONTROLLER),
    _api(60, "DescribeCluster", 0, 2, cluster.describe_cluster, ONE, listeners=_BOTH),
    _api(61, "DescribeProducers", 0, 0, producers.describe_producers, PARTITIONS),
    _api(62, "BrokerRegistration", 0, 4, broker_life.decide, ONE, listeners=_CONTROLLER),
    _api(63, "BrokerHeartbeat", 0, 2, broker_life.decide, ONE, listeners=_CONTROLLER),
    _api(64, "UnregisterBroker", 0, 0, cluster.unregister_broker, ONE, listeners=_BOTH),
    _api(65, "DescribeTransactions", 0, 0, describing.describe, NAMES, parts=describing.PARTS),
    _api(66, "ListTransactions", 0, 2, describing.list_transactions, NAMES),
    _api(67, "AllocateProducerIds", 0, 0, broker_life.decide, ONE, listeners=_CONTROLLER),
    _api(68, "ConsumerGroupHeartbeat", 0, 1, consumer_groups.heartbeat, PARTITIONS),
    _api(69, "ConsumerGroupDescribe", 0, 1, consumer_groups.describe, NAMES),
    _api(70, "ControllerRegistration", 0, 0, broker_life.decide, ONE, listeners=_CONTROLLER),
    _api(
        73,
        "AssignReplicasToDirs",
        0,
        0,
        broker_life.decide,
        PARTITIONS,
        listeners=_CONTROLLER,
        parts=Parts(
            ("directories", "topics", "partitions"), ("directories", "topics", "partitions")
        ),
    ),
    _api(74, "ListConfigResources", 0, 1, config_resources.handle, ONE),
    _api(75, "DescribeTopicPartitions", 0, 0, topic_partitions.handle, NAMES),
    _api(80, "AddRaftVoter", 0, 1, quorum.add_raft_voter, ONE, listeners=_BOTH),
    _api(81, "RemoveRaftVoter", 0, 0, quorum.remove_raft_voter, ONE, listeners=_BOTH),
    _api(82, "UpdateRaftVoter", 0, 0, quorum.update_raft_voter, ONE, listeners=_CONTROLLER),
    *(_api(*row[:6], parts=row[6]) for row in SHARE_APIS),
)

REGISTRY: Mapping[int, Api] = {api.key: api for api in sorted(_TABLE, key=lambda api: api.key)}

_ADVERTISED = {
    kind: tuple(api.advertisement() for api in REGISTRY.values() if kind in api.listeners)
    for kind in ListenerKind
}


_GUARDED = {key: replace(api, handler=api.guarded) for key, api in REGISTRY.items()}

_SERVED = {
    (kind, is_guarded): {key: api for key, api in apis.items() if kind in api.listeners}
    for kind in ListenerKind
    for is_guarded, apis in ((False, REGISTRY), (True, _GUARDED))
}


def served(kind: ListenerKind, *, is_guarded: bool = False) -> Mapping[int, Api]:
    """The APIs that this kind of listener serves, by key; guarded if there is an authorizer."""
    return _SERVED[kind, is_guarded]
