"""The state that all kinds of groups of one shard share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.groups.kind import GroupDirectory
from tidelog.coordination.offsets.offsets import OffsetStore
from tidelog.model.dice import Dice
from tidelog.security.authorizer import AuthorizerSettings


@dataclass(frozen=True, slots=True)
class GroupShardState:
    settings: GroupSettings
    dice: Dice
    largest_batch: Callable[[], int]
    """Returns max.message.bytes of the log, which may change at any time."""
    authorizer: AuthorizerSettings | None = None
    """The settings of the authorizer; None if none is configured."""
    groups: GroupDirectory = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
