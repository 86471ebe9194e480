"""The canonical shape of each message, which the rest of Tidelog uses for every version.

The canonical shape is kio's newest class of the message. If the newest version lost a field of an
older version, the canonical shape is a subclass in this module that adds the field again. No
information of any version is lost, and a handler can answer all versions with one value. These
messages have a subclass:

- OffsetCommit and OffsetFetch name a topic by `name` up to version 9 and by `topic_id` from 10 on.
  A request has the field of its version; the other field is "" or None. A response has both fields,
  and the encoder uses the field of the response's version.
- Metadata 8 to 10 can ask for the operations allowed on the cluster, as DescribeCluster does now.
- OffsetCommit up to 4 has a retention time. UpdateFeatures up to 1 has a result for each feature.

If the structure of a message changed, `reshape` converts it. Produce and Fetch are not in this
module, because they have their own codecs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

from kio.schema.metadata.v13 import request as metadata_request
from kio.schema.metadata.v13 import response as metadata_response
from kio.schema.offset_commit.v10 import request as commit_request
from kio.schema.offset_commit.v10 import response as commit_response
from kio.schema.offset_fetch.v10 import request as fetch_request
from kio.schema.offset_fetch.v10 import response as fetch_response
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2 import response as features_response
from kio.static.protocol import Entity

from tidelog.protocol.messages.schema import request_class, response_class, versions_of

_STRING = {"kafka_type": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(metadata_request.MetadataRequest):
    include_cluster_authorized_operations: bool = field(
        metadata={"kafka_type": "bool"}, default=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(metadata_response.MetadataResponse):
    cluster_authorized_operations: int = field(
        metadata={"kafka_type": "int32"}, default=-2147483648
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic(commit_request.OffsetCommitRequestTopic):
    name: str = field(metadata=_STRING, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest(commit_request.OffsetCommitRequest):
    topics: tuple[OffsetCommitRequestTopic, ...]
    retention_time: timedelta = field(
        metadata={"kafka_type": "timedelta_i64"}, default=timedelta(milliseconds=-1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic(commit_response.OffsetCommitResponseTopic):
    name: str = field(metadata=_STRING, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse(commit_response.OffsetCommitResponse):
    topics: tuple[OffsetCommitResponseTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopics(fetch_request.OffsetFetchRequestTopics):
    name: str = field(metadata=_STRING, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup(fetch_request.OffsetFetchRequestGroup):
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest(fetch_request.OffsetFetchRequest):
    groups: tuple[OffsetFetchRequestGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopics(fetch_response.OffsetFetchResponseTopics):
    name: str = field(metadata=_STRING, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup(fetch_response.OffsetFetchResponseGroup):
    topics: tuple[OffsetFetchResponseTopics, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse(fetch_response.OffsetFetchResponse):
    groups: tuple[OffsetFetchResponseGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse(features_response.UpdateFeaturesResponse):
    results: tuple[UpdatableFeatureResult, ...] = ()


_REQUESTS: Mapping[int, type[Entity]] = {
    3: MetadataRequest,
    8: OffsetCommitRequest,
    9: OffsetFetchRequest,
}
_RESPONSES: Mapping[int, type[Entity]] = {
    3: MetadataResponse,
    8: OffsetCommitResponse,
    9: OffsetFetchResponse,
    57: UpdateFeaturesResponse,
}


@cache
def canonical_request(api_key: int) -> type[Entity]:
    return _REQUESTS.get(api_key) or request_class(api_key, versions_of(api_key)[-1])


@cache
def canonical_response(api_key: int) -> type[Entity]:
    return _RESPONSES.get(api_key) or response_class(api_key, versions_of(api_key)[-1])
