"""ApiVersions (key 18), versions 0-4.

This is the first request of every modern client. The response contains the APIs and versions that
this listener serves, and the features that the cluster has finalized.

- An unknown version gets a version 0 response with UNSUPPORTED_VERSION and the versions of
  ApiVersions itself, so that the client can retry (KIP-511). Such a request cannot be decoded, so
  the node answers it with `FUTURE_VERSION` before any handler runs.
- From version 3 on the client sends its software name; a malformed name gets
  INVALID_REQUEST (KIP-511).
- Supported and finalized features are included from version 3 on (KIP-584). A feature whose lowest
  version is 0 is included only from version 4 on, because older clients reject a zero (KIP-1022).
- `zk_migration_ready` is always false, because there is no ZooKeeper.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from struct import pack

from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

from tidelog.api.handler import Encoded, Request
from tidelog.controller.features import COMMIT_RULES, KRAFT_VERSION, SUPPORTED_FEATURES
from tidelog.controller.image.image import VersionRange
from tidelog.model.errors import ErrorCode

KEY = 18
MIN_VERSION = 0
MAX_VERSION = 4

FUTURE_VERSION = Encoded(
    [pack(">hihhh", ErrorCode.unsupported_version, 1, KEY, MIN_VERSION, MAX_VERSION)]
)
"""The response body for an unknown version; its response header is version 0."""

_FIRST_WITH_SOFTWARE = 3
_FIRST_WITH_ZERO_FEATURES = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?", re.ASCII)


def answer(request: Request, advertised: Iterable[ApiVersion]) -> ApiVersionsResponse:
    """Returns the APIs and versions of this listener, and the cluster's features."""
    if request.version >= _FIRST_WITH_SOFTWARE and not _names_its_software(request):
        return ApiVersionsResponse(
            error_code=ErrorCode.invalid_request, api_keys=(), throttle_time=timedelta(0)
        )
    finalized = sorted(_finalized(request).items())
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(advertised),
        throttle_time=timedelta(0),
        supported_features=tuple(_supported_features(request)),
        finalized_features_epoch=request.image.offset,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized
        ),
    )


def _names_its_software(request: Request) -> bool:
    message = request.message
    return all(
        _SOFTWARE.fullmatch(text) is not None
        for text in (message.client_software_name, message.client_software_version)
    )


def _supported_features(request: Request) -> Iterable[SupportedFeatureKey]:
    for name, supported in sorted(_features_of_node(request).items()):
        if name == COMMIT_RULES:
            continue  # it is between Tidelog's nodes, and clients do not know it
        if supported.minimum > 0 or request.version >= _FIRST_WITH_ZERO_FEATURES:
            yield SupportedFeatureKey(
                name=name, min_version=supported.minimum, max_version=supported.maximum
            )


def _features_of_node(request: Request) -> Mapping[str, VersionRange]:
    image, node = request.image, request.node_id
    registered = image.brokers.get(node) or image.controllers.get(node)
    return registered.features if registered else SUPPORTED_FEATURES


def _finalized(request: Request) -> dict[str, int]:
    """The finalized feature levels. The quorum, not the image, knows the level of kraft.version."""
    levels = dict(request.image.features)
    if request.quorum.kraft_version > 0:
        levels[KRAFT_VERSION] = request.quorum.kraft_version
    return levels
