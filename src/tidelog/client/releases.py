"""Kafka's metadata versions, and the feature levels of each release."""

from collections.abc import Mapping

METADATA_VERSION = "metadata.version"
FIRST_LEVEL = 7

METADATA_VERSIONS = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1"),
    *("4.3-IV0", "4.4-IV0"),
)
"""The names of the levels of metadata.version, from FIRST_LEVEL on."""

NEWEST = "4.3-IV0"
"""The newest version of a released Kafka."""

_SINCE: Mapping[str, tuple[str, int]] = {
    "kraft.version": ("3.9-IV0", 1),
    "transaction.version": ("4.0-IV2", 2),
    "group.version": ("4.0-IV0", 1),
    "eligible.leader.replicas.version": ("4.1-IV0", 1),
    "share.version": ("4.2-IV0", 1),
    "streams.version": ("4.2-IV1", 1),
}
"""The version since which each feature is on by default, and its level. Before, it is 0."""


def metadata_level(version: str) -> int | None:
    """The level of a version such as 4.1, 4.1.0 or 4.1-IV1; None if there is no such version."""
    release, dash, _ = version.partition("-")
    release = ".".join(release.split(".")[:2])
    named = [
        level
        for level, name in enumerate(METADATA_VERSIONS, FIRST_LEVEL)
        if (name == version if dash else name.partition("-")[0] == release)
    ]
    return named[-1] if named else None


def level_name(feature: str, level: int) -> str:
    """The level as Kafka's tools print it: levels of metadata.version have names."""
    if feature != METADATA_VERSION or level == 0:
        return str(level)
    index = level - FIRST_LEVEL
    is_known = 0 <= index < len(METADATA_VERSIONS)
    return METADATA_VERSIONS[index] if is_known else f"UNKNOWN [{level}]"


def release_levels(metadata: int) -> dict[str, int]:
    """The default levels of all features at this level of metadata.version."""
    since = {
        feature: (metadata_level(version), level) for feature, (version, level) in _SINCE.items()
    }
    return {METADATA_VERSION: metadata} | {
        feature: level if first is not None and first <= metadata else 0
        for feature, (first, level) in since.items()
    }
