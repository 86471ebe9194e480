"""The limit on the metadata that a client may store with an offset."""

from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.java_strings import utf16_length


def is_too_long(metadata: str, shard: GroupShardState) -> bool:
    """Whether the metadata exceeds `offset.metadata.max.bytes`, which counts UTF-16 units."""
    return utf16_length(metadata) > shard.settings.offset_metadata_max_bytes
