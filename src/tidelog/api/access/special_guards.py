"""Guards of the APIs whose checks depend on the fields of the request or of the response."""

from dataclasses import replace
from types import GeneratorType
from typing import Any

from tidelog.api.access.guards import (
    Guard,
    bare_name,
    cluster,
    each,
    each_row,
    topic_name,
    whole,
    with_denied,
)
from tidelog.api.access.permits import (
    DENIED,
    permits,
    permits_any,
)
from tidelog.api.access.refused import denied, denied_rows, refused, with_rows
from tidelog.api.handler import Disconnect, Handler, Handling, Request
from tidelog.config.resource_type import ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import (
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
    canonical_response,
)
from tidelog.security.acls import CLUSTER_NAME, AclOperation, AclResource

_TOPIC, _GROUP, _CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
_TRANSACTION = AclResource.TRANSACTIONAL_ID
_NO_TOPIC_CONFIGS = {"num_partitions": -1, "replication_factor": -1, "configs": None}


def _finished(request: Request, handler: Handler) -> Handling:
    """Run the handler to its response, whether or not it waits."""
    response = handler(request)
    if isinstance(response, GeneratorType):
        response = yield from response
    return response


def _may_describe(request: Request, resource: AclResource, name: str) -> bool:
    return permits(request, AclOperation.DESCRIBE, resource, name, logs_denial=False)


# -- topics and configurations ---------------------------------------------------------------------


def create_topics(request: Request, handler: Handler) -> Handling:
    """Create needs Create; the configuration in the response needs DescribeConfigs."""
    create: Guard = each(AclOperation.CREATE, _TOPIC, "topics", "topics")
    if permits(request, AclOperation.CREATE, _CLUSTER, logs_denial=False):
        response = yield from _finished(request, handler)
    else:
        response = yield from _finished(request, lambda one: create(one, handler))
    return replace(response, topics=tuple(_shown(request, topic) for topic in response.topics))


def _shown(request: Request, topic: Any) -> Any:
    if topic.error_code is not ErrorCode.none or permits(
        request, AclOperation.DESCRIBE_CONFIGS, _TOPIC, topic.name, logs_denial=False
    ):
        return topic
    error = ErrorCode.topic_authorization_failed
    return replace(topic, topic_config_error_code=error, **_NO_TOPIC_CONFIGS)


def delete_topics(request: Request, handler: Handler) -> Any:
    """A topic that is named by its id keeps its name secret from those who may not describe it."""
    if permits(request, AclOperation.DELETE, _CLUSTER, logs_denial=False):
        return handler(request)
    cls = canonical_response(request.message.__api_key__)
    error, kept, refusals = ErrorCode.topic_authorization_failed, [], []
    for topic in request.message.topics:
        name = topic_name(request, topic)
        if name is None or permits(request, AclOperation.DELETE, _TOPIC, name):
            kept.append(topic)
            continue
        (row,) = denied_rows(cls, "responses", (topic,), error)
        is_shown = topic.name is not None or _may_describe(request, _TOPIC, name)
        refusals.append(replace(row, name=name if is_shown else None))
    if not refusals:
        return handler(request)
    if not kept:
        return with_rows(cls, "responses", refusals)
    request.message = replace(request.message, topics=tuple(kept))
    return with_denied(request, handler, "responses", tuple(refusals))


_CONFIG_RESOURCES = {
    ResourceType.TOPIC: _TOPIC,
    ResourceType.GROUP: _GROUP,
    ResourceType.BROKER: _CLUSTER,
    ResourceType.BROKER_LOGGER: _CLUSTER,
    ResourceType.CLIENT_METRICS: _CLUSTER,
}


def configs(operation: AclOperation, answered: str) -> Guard:
    """Each resource needs the operation on itself, or on the cluster if it is not a topic."""

    def of_type(resource: AclResource) -> Guard:
        def is_allowed(request: Request, row: Any) -> bool:
            kind = _CONFIG_RESOURCES.get(row.resource_type)
            if kind is not resource:
                return True
            name = CLUSTER_NAME if kind is _CLUSTER else row.resource_name
            return permits(request, operation, kind, name)

        return each_row(is_allowed, DENIED[resource], "resources", answered)

    topics, groups, rest = map(of_type, (_TOPIC, _GROUP, _CLUSTER))

    def guard(request: Request, handler: Handler) -> Any:
        return topics(request, lambda one: groups(one, lambda two: rest(two, handler)))

    return guard


# -- groups ----------------------------------------------------------------------------------------


def find_coordinator(request: Request, handler: Handler) -> Any:
    resource = {0: _GROUP, 1: _TRANSACTION}.get(request.message.key_type, _CLUSTER)
    if resource is _CLUSTER:
        guard = cluster(AclOperation.CLUSTER_ACTION, "coordinator_keys", "coordinators")
    else:
        guard = each(AclOperation.DESCRIBE, resource, "coordinator_keys", "coordinators", bare_name)
    return guard(request, handler)


def list_groups(request: Request, handler: Handler) -> Handling:
    """Without Describe on the cluster, the response has the groups that the client may describe."""
    response = yield from _finished(request, handler)
    if permits(request, AclOperation.DESCRIBE, _CLUSTER, logs_denial=False):
        return response
    groups = tuple(one for one in response.groups if _may_describe(request, _GROUP, one.group_id))
    return replace(response, groups=groups)


def describe_members(request: Request, handler: Handler) -> Handling:
    """A group is described only to those who may describe all topics of its members."""
    guard = each(AclOperation.DESCRIBE, _GROUP, "group_ids", "groups", bare_name)
    response = yield from _finished(request, lambda one: guard(one, handler))
    groups = []
    for group in response.groups:
        names = {name for member in group.members for name in _assigned(member)}
        if all(_may_describe(request, _TOPIC, name) for name in sorted(names)):
            groups.append(group)
        else:
            error = ErrorCode.topic_authorization_failed
            groups.append(denied(type(group), group.group_id, error))
    return replace(response, groups=tuple(groups))


def _assigned(member: Any) -> set[str]:
    assignments = (getattr(member, name, None) for name in ("assignment", "target_assignment"))
    return {
        topic.topic_name
        for assignment in assignments
        for topic in getattr(assignment, "topic_partitions", ())
    }


def offset_fetch(request: Request, handler: Handler) -> Handling:
    """Groups and topics that are not allowed get an error; a list of all topics omits them."""
    groups = request.message.groups
    allowed = [permits(request, AclOperation.DESCRIBE, _GROUP, one.group_id) for one in groups]
    kept, hidden = [], []
    for group in (one for one, is_kept in zip(groups, allowed, strict=True) if is_kept):
        topics, refusals = _split_topics(request, group)
        kept.append(replace(group, topics=topics))
        hidden.append(refusals)
    cls, error = canonical_response(request.message.__api_key__), _GROUP
    denied_groups = [one for one, is_kept in zip(groups, allowed, strict=True) if not is_kept]
    rows = [
        OffsetFetchResponseGroup(group_id=one.group_id, topics=(), error_code=DENIED[error])
        for one in denied_groups
    ]
    if not kept:
        return with_rows(cls, "groups", rows)
    request.message = replace(request.message, groups=tuple(kept))
    response = yield from _finished(request, handler)
    if isinstance(response, Disconnect):
        return response
    shown = [
        _with_hidden(request, group, refusals, asked.topics is None)
        for group, refusals, asked in zip(response.groups, hidden, kept, strict=True)
    ]
    return replace(response, groups=(*shown, *rows))


def _split_topics(request: Request, group: Any) -> tuple[Any, tuple[Any, ...]]:
    """The topics that the client may describe, and the rows of the others."""
    if group.topics is None:
        return None, ()
    kept, refusals = [], []
    for topic in group.topics:
        name = topic_name(request, topic)
        if name is None or permits(request, AclOperation.DESCRIBE, _TOPIC, name):
            kept.append(topic)
        else:
            error = ErrorCode.topic_authorization_failed
            refusals.append(denied(OffsetFetchResponseTopics, topic, error))
    return tuple(kept), tuple(refusals)


def _with_hidden(request: Request, group: Any, refusals: Any, is_all: bool) -> Any:
    topics = group.topics
    if is_all:
        topics = tuple(one for one in topics if _may_describe(request, _TOPIC, one.name))
    return replace(group, topics=(*topics, *refusals))


# -- transactions ----------------------------------------------------------------------------------


def init_producer_id(request: Request, handler: Handler) -> Any:
    """An idempotent producer needs IdempotentWrite, or Write on any topic (KIP-679)."""
    message = request.message
    if message.transactional_id is not None:
        guard = whole(AclOperation.WRITE, _TRANSACTION, "transactional_id")
        if getattr(message, "enable2_pc", False):
            second = whole(AclOperation.TWO_PHASE_COMMIT, _TRANSACTION, "transactional_id")
            return guard(request, lambda one: second(one, handler))
        return guard(request, handler)
    if permits_any(request, AclOperation.WRITE, _TOPIC) or permits(
        request, AclOperation.IDEMPOTENT_WRITE, _CLUSTER
    ):
        return handler(request)
    return refused(request, ErrorCode.cluster_authorization_failed)


def add_partitions_to_txn(request: Request, handler: Handler) -> Any:
    """Brokers send version 4 and later; a client's request needs Write on every topic."""
    if request.version >= _FIRST_BY_BROKERS:
        return cluster(AclOperation.CLUSTER_ACTION)(request, handler)
    ids = each(
        AclOperation.WRITE,
        _TRANSACTION,
        "transactions",
        "results_by_transaction",
        lambda _, row: str(row.transactional_id),
    )
    return ids(request, lambda one: _add_topics(one, handler))


_FIRST_BY_BROKERS = 4


def _add_topics(request: Request, handler: Handler) -> Any:
    cls = canonical_response(request.message.__api_key__)
    rows, has_denied = [], False
    for transaction in request.message.transactions:
        topics = []
        for topic in transaction.topics:
            allowed = permits(request, AclOperation.WRITE, _TOPIC, topic.name)
            has_denied |= not allowed
            error = (
                ErrorCode.operation_not_attempted
                if allowed
                else ErrorCode.topic_authorization_failed
            )
            topics.append((topic, error))
        rows.append((transaction, topics))
    if not has_denied:
        return handler(request)
    results = []
    for transaction, topics in rows:
        (row,) = denied_rows(cls, "results_by_transaction", (transaction,), ErrorCode.none)
        kind = type(row.topic_results[0]) if row.topic_results else None
        found = tuple(denied(kind, topic, error) for topic, error in topics if kind is not None)
        results.append(replace(row, topic_results=found))
    return with_rows(cls, "results_by_transaction", results)


def describe_transactions(request: Request, handler: Handler) -> Handling:
    guard = each(
        AclOperation.DESCRIBE, _TRANSACTION, "transactional_ids", "transaction_states", bare_name
    )
    response = yield from _finished(request, lambda one: guard(one, handler))
    states = tuple(
        replace(
            state,
            topics=tuple(one for one in state.topics if _may_describe(request, _TOPIC, one.topic)),
        )
        for state in response.transaction_states
    )
    return replace(response, transaction_states=states)


def list_transactions(request: Request, handler: Handler) -> Handling:
    response = yield from _finished(request, handler)
    states = tuple(
        one
        for one in response.transaction_states
        if _may_describe(request, _TRANSACTION, one.transactional_id)
    )
    return replace(response, transaction_states=states)


# -- other guards ----------------------------------------------------------------------------------


def alter_scram_credentials(request: Request, handler: Handler) -> Any:
    """Each named user gets the error once."""
    if permits(request, AclOperation.ALTER, _CLUSTER):
        return handler(request)
    message = request.message
    names = dict.fromkeys(row.name for row in (*message.deletions, *message.upsertions))
    cls, error = canonical_response(message.__api_key__), ErrorCode.cluster_authorization_failed
    return with_rows(cls, "results", denied_rows(cls, "results", names, error))


def alter_replica_log_dirs(request: Request, handler: Handler) -> Any:
    if permits(request, AclOperation.ALTER, _CLUSTER):
        return handler(request)
    topics = [topic for directory in request.message.dirs for topic in directory.topics]
    cls = canonical_response(request.message.__api_key__)
    error = ErrorCode.cluster_authorization_failed
    return with_rows(cls, "results", denied_rows(cls, "results", topics, error))


def create_token(request: Request, handler: Handler) -> Any:
    """A token for another owner needs CreateTokens on that user."""
    message = request.message
    owner = f"{message.owner_principal_type}:{message.owner_principal_name}"
    if not message.owner_principal_name or owner == str(request.principal):
        return handler(request)
    if permits(request, AclOperation.CREATE_TOKENS, AclResource.USER, owner):
        return handler(request)
    return refused(request, ErrorCode.delegation_token_authorization_failed)


def streams_heartbeat(request: Request, handler: Handler) -> Any:
    """A member needs Read on its group, and Describe on the source topics of its topology."""
    guard = whole(AclOperation.READ, _GROUP, "group_id")

    def with_topics(allowed: Request) -> Any:
        topology = allowed.message.topology
        parts = () if topology is None else topology.subtopologies
        names = [name for part in parts for name in part.source_topics]
        if all(permits(allowed, AclOperation.DESCRIBE, _TOPIC, name) for name in names):
            return handler(allowed)
        return refused(allowed, ErrorCode.topic_authorization_failed)

    return guard(request, with_topics)


def share_offsets(operation: AclOperation) -> Guard:
    """Each group needs the operation on itself, and Describe on each of its topics."""

    def is_allowed(request: Request, group: Any) -> bool:
        return permits(request, operation, _GROUP, group.group_id) and all(
            permits(request, AclOperation.DESCRIBE, _TOPIC, topic.topic_name)
            for topic in group.topics or ()
        )

    return each_row(is_allowed, ErrorCode.group_authorization_failed, "groups", "groups")
