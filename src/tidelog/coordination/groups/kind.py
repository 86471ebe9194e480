"""The interface of a kind of group: classic, consumer, share.

All kinds live in one shard of `__consumer_offsets` and share one namespace of group ids, the
directory. The group coordinator is one `CoordinatorMachine` that passes each input to the kind that
it belongs to:

- a request goes to the kind of its group if that kind handles the message, else to the first kind
  that does;
- a record goes to the kind that lists the class of its key;
- a change, a `then` and a `reply_to` go back to the kind whose decision contains them, unless the
  change is wrapped in `OfKind`;
- all kinds get `loaded`, `image_changed` and `tick`.

A decision may contain records of other kinds, for example to convert a group. A kind puts a group
into the directory, and removes it, only in `replay` and `apply`. A kind's `replay` of a tombstone
also drops what the kind keeps about the group in memory, such as its timers.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.runtime.decision import (
    CoordinatorDecision,
    CoordinatorRequest,
    Instant,
    NoAnswer,
    ProducerIdAndEpoch,
    RecordOrigin,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicId

GroupRecord: TypeAlias = tuple[Any, Any | None]
"""A key and a value, each an instance of its record's class; a value of None is a tombstone."""

GroupDecision: TypeAlias = CoordinatorDecision[GroupRecord]


class OfKind(NamedTuple):
    """A change for the kind of this name, in a decision of another kind."""

    type_name: str
    change: Any


class CoordinatedGroup(Protocol):
    """A group of any kind, as the parts that all kinds share see it: offsets and administration."""

    @property
    def group_id(self) -> str: ...

    @property
    def type_name(self) -> str:
        """`classic`, `consumer` or `share`, as in ListGroups."""

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; empty if the group has none."""

    @property
    def state_name(self) -> str:
        """The state in ListGroups, such as `Stable`."""

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int | None
    ) -> ErrorCode:
        """Whether a member may commit offsets; `epoch` is its generation or member epoch.

        `version` is the version of OffsetCommit, or None for a commit in a transaction.
        """

    def check_committed_partition(
        self, member_id: str, epoch: int, topic_id: TopicId, partition: int
    ) -> ErrorCode:
        """Whether a member may commit this partition, in a commit that `check_commit` accepts."""

    def commit_changes(self, member_id: str, at: Instant) -> tuple[Any, ...]:
        """Changes of this kind that follow from an accepted commit, such as a longer session."""

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether a member may fetch offsets; a caller that is no member sends the epoch -1."""

    def check_offset_delete(self) -> ErrorCode:
        """Whether offsets of topics to which nobody subscribes may be deleted."""

    def check_delete(self) -> ErrorCode:
        """Whether the group may be deleted."""

    @property
    def is_removable(self) -> bool:
        """Whether the group may be removed once its last offset has expired."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def unused_since(self, commit_timestamp: Millis) -> Millis | None:
        """When the retention of an offset committed at this time starts; None if never."""

    def tombstones(self) -> list[GroupRecord]:
        """The records that remove the group, without its offsets."""


GroupDirectory: TypeAlias = dict[str, CoordinatedGroup]
"""All groups of a shard, by group id."""


class GroupKind(ABC):
    """One kind of group in one shard. The rules of `CoordinatorMachine` apply."""

    type_name: str
    messages: frozenset[type]
    """The classes of the requests that this kind decides, in their newest version."""
    keys: tuple[type, ...]
    """The classes of the record keys that this kind replays."""

    @abstractmethod
    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision: ...

    @abstractmethod
    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None: ...

    def apply(self, change: Any) -> None:
        raise AssertionError(f"not a change of a {self.type_name} group: {change}")

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        return iter(())

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[GroupDecision]:
        return iter(())

    def answered(
        self, reply_to: Hashable, answer: Any | NoAnswer, at: Instant
    ) -> Iterator[GroupDecision]:
        return iter(())

    def image_changed(self, old: ClusterImage, at: Instant) -> Iterator[GroupDecision]:
        return iter(())

    def transaction_ended(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Apply the end of a producer's transaction, of which the partition holds a marker."""
        return  # only offsets can belong to a transaction

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        return iter(())

    def next_deadline(self) -> Millis | None:
        return None
