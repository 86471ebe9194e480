"""Metadata (key 3), versions 0-13.

Returns topics, partitions and brokers, as they are reachable through the client's listener.

- A null list requests all topics, and an empty list requests none. In version 0 an empty list
  requests all topics. Topics are requested by name, or from version 12 on by id (KIP-516). An
  unknown id gets UNKNOWN_TOPIC_ID, an unknown name UNKNOWN_TOPIC_OR_PARTITION, and an invalid name
  INVALID_TOPIC_EXCEPTION. An id or a null name in version 10 or 11 gets INVALID_REQUEST.
- A missing topic is created if `auto.create.topics.enable` and the client allow it. In versions
  before 4, the client cannot forbid the creation. As in Kafka, the response contains
  UNKNOWN_TOPIC_OR_PARTITION for the new topic, and the client retries. Unlike in Kafka, the topic
  exists when the response is sent. One request creates at most a hundred topics; Kafka has no
  limit.
- A partition without a leader has leader -1 and LEADER_NOT_AVAILABLE. From version 6 on, the error
  is LISTENER_NOT_FOUND if the leader has no endpoint on the listener. Version 0 omits unreachable
  replicas and returns REPLICA_NOT_AVAILABLE.
- If a leader has just failed, the request is answered when the new leader is known, at the latest
  half a second after the failure. The failed broker stays in the broker list for a while. If the
  list did not contain it, clients would wait a second before they refresh their metadata.
- With an authorizer, a list of all topics omits those that the client may not describe. A request
  for such a topic gets TOPIC_AUTHORIZATION_FAILED, whether or not the topic exists.
- If authorized operations are requested (KIP-430), the operations that the authorizer allows are
  returned; without an authorizer, all operations.
- Every broker forwards requests to the controller, so the controller id is the id of the answering
  broker.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from tidelog.api.access.permits import (
    TOPIC_OPERATIONS,
    cluster_operations,
    permits,
    permitted_operations,
)
from tidelog.api.cluster.metadata_response import (
    NOTHING,
    MetadataRows,
    PartitionRow,
    TopicRow,
    encode_metadata_steps,
)
from tidelog.api.groups.internal_topics import SHOWN_AS_INTERNAL, creatable_topic, creation
from tidelog.api.handler import Encoded, Handling, Request
from tidelog.api.slicing import PAUSE, Pace, chunks, in_slices, pausing
from tidelog.api.view import NO_AUTHORIZED_OPERATIONS, ListenerView
from tidelog.controller.decide.topic_names import name_problem
from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.model.effects import AwaitElections, ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, ZERO_TOPIC_ID, NodeId
from tidelog.security.acls import AclOperation, AclResource

_FIRST_BY_ID = 12
_FIRST_WITH_LISTENER_NOT_FOUND = 6
_SLICE = 1_000
_CREATIONS = 100
"""The maximum number of topics that one request creates. The client's next request creates more."""


def handle(request: Request) -> Handling:
    """Returns topics, partitions and brokers; creates missing topics if that is allowed."""
    asked = request.message.topics
    error = _refusal(asked or (), request.version)
    if error is not ErrorCode.none:
        return (yield from _encoded(_refused(asked, error), request))
    gone = yield AwaitElections(_names(asked, request.image))
    rows = yield from _rows(asked, request, gone)
    if _may_create(request):
        missing = yield from _missing(asked or (), request.image)
        if request.authorizer is not None:
            missing, rows = _creatable(request, missing, rows)
        topics = [creatable_topic(name, request.settings) for name in missing[:_CREATIONS]]
        creatable = [topic for topic in topics if topic is not None]
        if creatable:
            yield ChangeMetadata(creation(creatable, request.settings))
    return (yield from _encoded(rows, request))


def _encoded(rows: MetadataRows, request: Request) -> Handling:
    return Encoded([(yield from pausing(encode_metadata_steps(rows, request.version)))])


def _refusal(asked: Sequence[Any], version: int) -> ErrorCode:
    has_nulls = None in [topic.name for topic in asked]
    has_ids = bool(_topic_ids(asked))
    if version < _FIRST_BY_ID and (has_nulls or has_ids):
        return ErrorCode.invalid_request
    # As in Kafka, a topic that has no name and no id gets UNKNOWN_SERVER_ERROR.
    return ErrorCode.unknown_server_error if has_nulls and not has_ids else ErrorCode.none


def _refused(asked: Iterable[Any], error: ErrorCode) -> MetadataRows:
    topics = [TopicRow(error, topic.name or "", topic.topic_id or ZERO_TOPIC_ID) for topic in asked]
    return NOTHING._replace(topics=topics, error=error)


def _may_create(request: Request) -> bool:
    return bool(
        request.message.allow_auto_topic_creation and request.settings.auto_create_topics_enable
    )


def _creatable(
    request: Request, missing: list[str], rows: MetadataRows
) -> tuple[list[str], MetadataRows]:
    """The topics that the client may create; the rows of the others get an error."""
    missing = [name for name in missing if _may_describe(request, name)]
    if permits(request, AclOperation.CREATE, AclResource.CLUSTER, logs_denial=False):
        return missing, rows
    create = AclOperation.CREATE
    allowed = [name for name in missing if permits(request, create, AclResource.TOPIC, name)]
    denied = set(missing).difference(allowed)
    error = ErrorCode.topic_authorization_failed
    topics = [row._replace(error=error) if row.name in denied else row for row in rows.topics]
    return allowed, rows._replace(topics=topics)


def _may_describe(request: Request, name: str) -> bool:
    return permits(request, AclOperation.DESCRIBE, AclResource.TOPIC, name, logs_denial=False)


def _missing(asked: Sequence[Any], image: ClusterImage) -> Handling:
    """The valid requested names for which no topic exists; empty if topics are requested by id."""
    if _topic_ids(asked):
        return []
    names = {topic.name or "": None for topic in asked}
    unknown = [name for name in names if name not in image.topics]
    problems = yield from in_slices(unknown, name_problem, _SLICE)
    return [name for name, problem in zip(unknown, problems, strict=True) if problem is None]


def _names(asked: Sequence[Any] | None, image: ClusterImage) -> list[str] | None:
    """The names of the requested topics; None means all topics."""
    if asked is None:
        return None
    by_id = [image.topic_names.get(topic_id) for topic_id in _topic_ids(asked)]
    return [topic.name for topic in asked if topic.name] + [name for name in by_id if name]


def _topic_ids(asked: Sequence[Any]) -> list[UUID]:
    return [topic.topic_id for topic in asked if topic.topic_id is not None]


def _rows(asked: Sequence[Any] | None, request: Request, gone: Collection[NodeId]) -> Handling:
    message, image = request.message, request.image
    view = ListenerView(image, request.listener)
    describe = _Topics(view, request, message.include_topic_authorized_operations)
    wants_cluster = message.include_cluster_authorized_operations
    topics = yield from describe.all() if asked is None else describe.asked_for(asked)
    return MetadataRows(
        brokers=view.nodes_with(gone),
        cluster_id=image.cluster_id,
        controller_id=view.controller(request.node_id),
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(request) if wants_cluster else NO_AUTHORIZED_OPERATIONS
        ),
    )


class _Topics:
    """Builds the rows of topics for one version and listener."""

    def __init__(self, view: ListenerView, request: Request, wants_operations: bool) -> None:
        self._view = view
        self._request = request
        self._version = request.version
        self._wants_operations = wants_operations
        self._pace = Pace(_SLICE)

    def all(self) -> Handling:
        topics = self._view.image.topics
        rows: list[TopicRow] = []
        for name in sorted(topics):
            if self._is_hidden(name):
                continue
            rows.append((yield from self._found(topics[name])))
        return rows

    def asked_for(self, asked: Sequence[Any]) -> Handling:
        image = self._view.image
        rows: list[TopicRow] = []
        if topic_ids := _topic_ids(asked):
            for topic_id in dict.fromkeys(topic_ids):
                rows.append((yield from self._row(image.topic(topic_id), topic_id)))
        else:
            for name in {topic.name or "": None for topic in asked}:
                rows.append((yield from self._row(image.topics.get(name), name)))
        return rows

    def _is_hidden(self, name: str) -> bool:
        return self._request.authorizer is not None and not _may_describe(self._request, name)

    def _operations(self, name: str) -> int:
        if not self._wants_operations:
            return NO_AUTHORIZED_OPERATIONS
        return permitted_operations(self._request, TOPIC_OPERATIONS, AclResource.TOPIC, name)

    def _row(self, topic: TopicImage | None, asked: str | UUID) -> Handling:
        name = asked if isinstance(asked, str) else topic.name if topic is not None else None
        if name is not None and self._is_hidden(name):
            # A topic that is identified by its id keeps its name secret.
            error = ErrorCode.topic_authorization_failed
            if isinstance(asked, UUID):
                return TopicRow(error, None, asked)
            return TopicRow(error, name, is_internal=name in SHOWN_AS_INTERNAL)
        if topic is not None:
            return (yield from self._found(topic))
        if self._pace.is_due():
            yield PAUSE
        if isinstance(asked, UUID):
            return TopicRow(ErrorCode.unknown_topic_id, None, asked)
        return self._unknown(asked)

    def _unknown(self, name: str) -> TopicRow:
        unusable = name_problem(name) is not None
        return TopicRow(
            ErrorCode.invalid_topic_exception if unusable else ErrorCode.unknown_topic_or_partition,
            name,
            is_internal=name in SHOWN_AS_INTERNAL,
            authorized_operations=self._operations(name),
        )

    def _found(self, topic: TopicImage) -> Handling:
        partitions: list[PartitionRow] = []
        for indexes in chunks(sorted(topic.partitions), _SLICE):
            partitions += [self._partition(index, topic.partitions[index]) for index in indexes]
            if self._pace.is_due(len(indexes)):
                yield PAUSE
        return TopicRow(
            ErrorCode.none,
            topic.name,
            topic.topic_id,
            topic.name in SHOWN_AS_INTERNAL,
            partitions,
            self._operations(topic.name),
        )

    def _partition(self, index: int, partition: PartitionImage) -> PartitionRow:
        leader = self._view.leader(partition)
        replicas, isr = partition.replicas, partition.isr
        offline = self._view.offline_replicas(partition)
        error = ErrorCode.none
        if self._version == 0:
            replicas, isr = self._reachable(replicas), self._reachable(isr)
            if len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
                error = ErrorCode.replica_not_available
        if leader == NO_NODE:
            error = self._why_no_leader(partition)
        return PartitionRow(error, index, leader, partition.leader_epoch, replicas, isr, offline)

    def _reachable(self, replicas: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        return tuple(replica for replica in replicas if replica in self._view.nodes)

    def _why_no_leader(self, partition: PartitionImage) -> ErrorCode:
        lacks_listener = partition.leader in self._view.image.brokers
        if lacks_listener and self._version >= _FIRST_WITH_LISTENER_NOT_FOUND:
            return ErrorCode.listener_not_found
        return ErrorCode.leader_not_available
