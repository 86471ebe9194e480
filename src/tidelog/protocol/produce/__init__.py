"""The codec of Produce (key 0), versions 3 to 13. Records are views of the frame."""

from tidelog.protocol.produce.request import ProduceRequest, decode_request, encode_request
from tidelog.protocol.produce.response import (
    PartitionProduced,
    ProduceResponse,
    RecordError,
    decode_response,
    encode_response,
)

__all__ = [
    "PartitionProduced",
    "ProduceRequest",
    "ProduceResponse",
    "RecordError",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]
