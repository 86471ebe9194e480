"""The group coordinator: one machine for all kinds of groups in one shard of `__consumer_offsets`.

The machine passes each input to the kind that it belongs to, by the rules of `GroupKind`.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.administration import GroupAdministration
from tidelog.coordination.groups.classic.kind import ClassicGroups
from tidelog.coordination.groups.consumer.kind import ConsumerGroups
from tidelog.coordination.groups.consumer.topics import ClusterTopics, TopicHashes
from tidelog.coordination.groups.kind import GroupDecision, GroupKind, GroupRecord, OfKind
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.groups.share.share_groups import ShareGroups
from tidelog.coordination.offsets.kind import CommittedOffsets
from tidelog.coordination.records import Key, decode_key, decode_value, encode_key, encode_value
from tidelog.coordination.runtime.decision import (
    CoordinatorRequest,
    Instant,
    LogRecord,
    NoAnswer,
    ProducerIdAndEpoch,
    RecordOrigin,
)
from tidelog.coordination.runtime.machine import CoordinatorMachine
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.protocol.messages.canonical import canonical_request
from tidelog.protocol.messages.versions import lift


def group_kinds(shard: GroupShardState) -> list[GroupKind]:
    """The kinds of groups in a shard, and the parts that all of them share."""
    hashes = TopicHashes()

    def hash_of(names: Iterable[str], image: ClusterImage) -> int:
        return hashes.of_group(names, ClusterTopics(image))

    return [
        ClassicGroups(shard),
        ConsumerGroups(shard),
        ShareGroups(shard.groups, shard.settings.share, hash_of),
        CommittedOffsets(shard),
        GroupAdministration(shard),
    ]


class GroupMachine(CoordinatorMachine[GroupRecord]):
    def __init__(self, shard: GroupShardState) -> None:
        self.shard = shard
        self._kinds: Sequence[GroupKind] = group_kinds(shard)
        self._by_name = {kind.type_name: kind for kind in self._kinds}
        self._by_key = {key: kind for kind in self._kinds for key in kind.keys}
        self._decoded: dict[bytes, Key | None] | None = {}
        """The keys that were read so far. A key occurs many times in a log that is not compacted,
        so it is decoded once while the shard is loaded."""

    # -- Records -----------------------------------------------------------------------------------

    def encode(self, record: GroupRecord) -> LogRecord:
        key, value = record
        return encode_key(key), None if value is None else encode_value(value)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        decoded = self._decode_key(key)
        if type(decoded) not in self._by_key:
            return None  # a record of a kind that is not served here
        assert decoded is not None
        return decoded, None if value is None else decode_value(decoded, value)

    def _decode_key(self, data: bytes) -> Key | None:
        if self._decoded is None:
            return decode_key(data)
        key = self._decoded.get(data)
        if key is None:
            key = self._decoded[data] = decode_key(data)
        return key

    def replay(self, record: GroupRecord, origin: RecordOrigin) -> None:
        key, value = record
        self._by_key[type(key)].replay(key, value, origin)

    def apply(self, change: OfKind) -> None:
        self._by_name[change.type_name].apply(change.change)

    def transaction_ended(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        for kind in self._kinds:
            kind.transaction_ended(producer, committed=committed)

    # -- Inputs ------------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        message = lift(request.message, canonical_request(request.message.__api_key__))
        if message is not request.message:
            request = CoordinatorRequest(message, request.version, request.client, request.ticket)
        kind = self._kind_for(message)
        return _of_kind(kind, kind.decide(request, at))

    def _kind_for(self, message: Any) -> GroupKind:
        group = self.shard.groups.get(getattr(message, "group_id", ""))
        of_group = None if group is None else self._by_name.get(group.type_name)
        if of_group is not None and type(message) in of_group.messages:
            return of_group
        return next(kind for kind in self._kinds if type(message) in kind.messages)

    def refuse(self, request: CoordinatorRequest, error: ErrorCode) -> Any:
        return refuse_group_request(request, error)

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        self._decoded = None
        for kind in self._kinds:
            yield from (_of_kind(kind, decision) for decision in kind.loaded(at))

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[GroupDecision]:
        assert isinstance(then, OfKind)
        kind = self._by_name[then.type_name]
        return (_of_kind(kind, decision) for decision in kind.settled(then.change, error, at))

    def answered(
        self, reply_to: Hashable, answer: Any | NoAnswer, at: Instant
    ) -> Iterator[GroupDecision]:
        assert isinstance(reply_to, OfKind)
        kind = self._by_name[reply_to.type_name]
        return (_of_kind(kind, decision) for decision in kind.answered(reply_to.change, answer, at))

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[GroupDecision]:
        for kind in self._kinds:
            yield from (_of_kind(kind, decision) for decision in kind.image_changed(old, at))

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        for kind in self._kinds:
            yield from (_of_kind(kind, decision) for decision in kind.tick(at))

    def next_deadline(self) -> Millis | None:
        deadlines = [kind.next_deadline() for kind in self._kinds]
        return min((one for one in deadlines if one is not None), default=None)


def refuse_group_request(request: CoordinatorRequest, error: ErrorCode) -> Any:
    message = lift(request.message, canonical_request(request.message.__api_key__))
    return replies.refusal(message, replies.write_error(error), request.version)


def _of_kind(kind: GroupKind, decision: GroupDecision) -> GroupDecision:
    """Mark what must come back to this kind."""
    name = kind.type_name
    return decision._replace(
        changes=tuple(_marked(name, change) for change in decision.changes),
        then=_marked(name, decision.then),
        requests=tuple(
            request._replace(reply_to=_marked(name, request.reply_to))
            for request in decision.requests
        ),
    )


def _marked(name: str, value: Any) -> OfKind | None:
    if value is None or isinstance(value, OfKind):
        return value
    return OfKind(name, value)
