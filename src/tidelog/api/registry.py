"""The table of Kafka APIs that this broker serves: the one place that says what is supported.

ApiVersions, the node's dispatch and docs/protocol.md all come from it, so that what is advertised
is what works.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse

from tidelog.api import cluster, metadata, topic_partitions, versions
from tidelog.api.handler import Handler, Request
from tidelog.api.listeners import ListenerKind, kind_of

_BROKER = frozenset({ListenerKind.BROKER})
_BOTH = frozenset(ListenerKind)


@dataclass(frozen=True, slots=True)
class Api:
    """One API: what it is called, which versions work, and who answers it."""

    key: int
    name: str
    min_version: int
    max_version: int
    handler: Handler
    canonical_version: int
    """The version of the message that the handler is given and returns, whatever was asked."""
    listeners: frozenset[ListenerKind] = _BROKER
    advertised_min_version: int | None = None
    """What ApiVersions says, where clients insist on a version that is not served any more."""

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
    """The APIs and versions of this listener, and the cluster's features."""
    return versions.answer(request, _ADVERTISED[kind_of(request)])


def _api(
    key: int,
    name: str,
    lowest: int,
    highest: int,
    handler: Handler,
    *,
    canonical: int | None = None,
    listeners: frozenset[ListenerKind] = _BROKER,
    advertised_lowest: int | None = None,
) -> Api:
    return Api(
        key=key,
        name=name,
        min_version=lowest,
        max_version=highest,
        handler=handler,
        canonical_version=highest if canonical is None else canonical,
        listeners=listeners,
        advertised_min_version=advertised_lowest,
    )


_TABLE = (
    # Version 10 is the last that can ask for the cluster's authorized operations.
    _api(3, "Metadata", 0, 13, metadata.handle, canonical=10),
    _api(
        versions.KEY,
        "ApiVersions",
        versions.MIN_VERSION,
        versions.MAX_VERSION,
        api_versions,
        listeners=_BOTH,
    ),
    _api(60, "DescribeCluster", 0, 2, cluster.handle, listeners=_BOTH),
    _api(75, "DescribeTopicPartitions", 0, 0, topic_partitions.handle),
)

REGISTRY: Mapping[int, Api] = {api.key: api for api in sorted(_TABLE, key=lambda api: api.key)}

_ADVERTISED = {
    kind: tuple(api.advertisement() for api in REGISTRY.values() if kind in api.listeners)
    for kind in ListenerKind
}


def lookup(key: int, kind: ListenerKind) -> Api | None:
    """The API with this key, if this kind of listener serves it."""
    api = REGISTRY.get(key)
    return api if api is not None and kind in api.listeners else None
