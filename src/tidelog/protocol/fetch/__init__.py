"""The codec of Fetch (key 1), versions 4 to 18. Records are file slices or views of a frame."""

from tidelog.protocol.fetch.request import (
    FetchPartition,
    FetchRequest,
    decode_request,
    encode_request,
)
from tidelog.protocol.fetch.response import (
    FetchResponse,
    PartitionFetched,
    SnapshotId,
    decode_response,
    encode_response,
)

__all__ = [
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "PartitionFetched",
    "SnapshotId",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
