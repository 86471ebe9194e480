"""Reads and changes the feature levels of a cluster."""

from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from typing import NamedTuple

from kio.schema.api_versions.v3.request import ApiVersionsRequest as OlderRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse as OlderResponse
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.update_features.v1 import request as per_feature
from kio.schema.update_features.v1.response import UpdateFeaturesResponse as PerFeatureResponse
from kio.schema.update_features.v2 import request as at_once
from kio.schema.update_features.v2.response import UpdateFeaturesResponse

from tidelog import __version__
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.model.errors import ErrorCode

TIMEOUT = timedelta(seconds=30)


class FeatureRange(NamedTuple):
    name: str
    finalized: int
    supported: tuple[int, int]


class Features(NamedTuple):
    epoch: int | None
    """The metadata offset of the finalized levels; None if the broker does not know it."""
    ranges: list[FeatureRange]


class UpgradeType(IntEnum):
    """The direction of an update, with Kafka's names and numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def describe_features(client: Client) -> Features:
    """The features that brokers support, each with the level that the cluster has finalized.

    The older version of the request leaves out features that support level 0.
    """
    name, version = "tidelog", __version__
    answer: ApiVersionsResponse | OlderResponse
    if client.speaks(ApiVersionsRequest):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = client.ask(request, ApiVersionsResponse)
    else:
        older = OlderRequest(client_software_name=name, client_software_version=version)
        answer = client.ask(older, OlderResponse)
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    ranges = [
        FeatureRange(one.name, levels.get(one.name, 0), (one.min_version, one.max_version))
        for one in answer.supported_features
    ]
    epoch = answer.finalized_features_epoch
    return Features(epoch if epoch >= 0 else None, sorted(ranges))


def update_features(
    client: Client, levels: Mapping[str, int], how: UpgradeType, *, dry_run: bool
) -> dict[str, str | None]:
    """Set feature levels; returns the error message of each feature, None if there is no error."""
    if not client.speaks(at_once.UpdateFeaturesRequest):
        return _update_one_by_one(client, levels, how, dry_run=dry_run)
    answer = client.ask(
        at_once.UpdateFeaturesRequest(
            timeout=TIMEOUT,
            feature_updates=tuple(
                at_once.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=how)
                for name, level in levels.items()
            ),
            validate_only=dry_run,
        ),
        UpdateFeaturesResponse,
    )
    return dict.fromkeys(levels, _message(answer.error_code, answer.error_message))


def _update_one_by_one(
    client: Client, levels: Mapping[str, int], how: UpgradeType, *, dry_run: bool
) -> dict[str, str | None]:
    """Brokers before Kafka 4.0 answer with an error for each feature."""
    answer = client.ask(
        per_feature.UpdateFeaturesRequest(
            timeout=TIMEOUT,
            feature_updates=tuple(
                per_feature.FeatureUpdateKey(
                    feature=name, max_version_level=level, upgrade_type=how
                )
                for name, level in levels.items()
            ),
            validate_only=dry_run,
        ),
        PerFeatureResponse,
    )
    if answer.error_code is not ErrorCode.none:
        return dict.fromkeys(levels, _message(answer.error_code, answer.error_message))
    return {one.feature: _message(one.error_code, one.error_message) for one in answer.results}


def _message(error: ErrorCode, message: str | None) -> str | None:
    return None if error is ErrorCode.none else message or default_message(error)
