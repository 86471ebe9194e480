"""Builds the responses to denied requests, and to the denied parts of requests.

A row of a response repeats the fields that identify the row of the request, such as the name of a
topic and the index of a partition. Each error field has the error, and all other fields have the
defaults of Kafka's schema.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kio.static.protocol import Entity

from tidelog.api.handler import Request
from tidelog.model.errors import ErrorCode
from tidelog.protocol.fetch import FetchRequest, FetchResponse
from tidelog.protocol.messages.canonical import canonical_response
from tidelog.protocol.messages.schema import MessageField, fields_of

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "name": ("topic", "topic_name"),
    "topic": ("name", "topic_name"),
    "topic_name": ("name", "topic"),
    "partition_index": ("partition",),
    "partition": ("partition_index",),
    "partitions": ("partition_indexes",),
    "results_by_partition": ("partitions",),
    "topic_results": ("topics",),
    "user": ("name",),
}
"""Other names that a request has for a field of its response."""

_ERRORS = ("error_code", "partition_error_code")
_UNKNOWN = {"low_watermark": -1, "node_id": -1, "port": -1, "committed_offset": -1}
"""Kafka's values in error rows, where they differ from the schema's defaults."""

MESSAGES = {
    ErrorCode.topic_authorization_failed: "Topic authorization failed.",
    ErrorCode.group_authorization_failed: "Group authorization failed.",
    ErrorCode.cluster_authorization_failed: "Cluster authorization failed.",
    ErrorCode.transactional_id_authorization_failed: "Transactional Id authorization failed.",
    ErrorCode.delegation_token_authorization_failed: "Delegation Token authorization failed.",
}


def refused(request: Request, error: ErrorCode, asked: str = "", answered: str = "") -> Any:
    """A response with the error at its top, or in a row for each row of the request."""
    message = request.message
    if isinstance(message, FetchRequest):
        return FetchResponse(error=error)
    cls = canonical_response(message.__api_key__)
    rows = denied_rows(cls, answered, getattr(message, asked), error) if answered else ()
    return with_rows(cls, answered, rows, error)


def with_rows(
    cls: type[Entity], answered: str, rows: Iterable[Any], error: ErrorCode = ErrorCode.none
) -> Any:
    """A response that has only these rows, and the error if it has a field for one."""
    values = {field.name: _plain(field, error) for field in fields_of(cls)}
    if answered:
        values[answered] = tuple(rows)
    return cls(**values)


def denied_rows(
    cls: type[Entity], answered: str, asked: Iterable[Any], error: ErrorCode
) -> tuple[Any, ...]:
    """A row of the response for each row of the request."""
    (row,) = (field.entity for field in fields_of(cls) if field.name == answered)
    assert row is not None
    return tuple(denied(row, item, error) for item in asked)


def denied(cls: type[Entity], asked: Any, error: ErrorCode) -> Any:
    """The row for one denied row of a request, which may be a bare name or number."""
    if isinstance(asked, str | int):
        key, *_ = (field for field in fields_of(cls) if field.name not in _ERRORS)
        values = {field.name: _plain(field, error) for field in fields_of(cls)}
        return cls(**{**values, key.name: asked})
    return cls(**{field.name: _value(field, asked, error) for field in fields_of(cls)})


def _value(field: MessageField, asked: Any, error: ErrorCode) -> Any:
    if field.name in _ERRORS or field.name == "error_message":
        return _plain(field, error)
    for name in (field.name, *_ALIASES.get(field.name, ())):
        if not hasattr(asked, name):
            continue
        found = getattr(asked, name)
        if field.entity is None or not field.is_array:
            return found
        return tuple(denied(field.entity, item, error) for item in found or ())
    return _plain(field, error)


def _plain(field: MessageField, error: ErrorCode) -> Any:
    if field.name in _ERRORS:
        return error
    if field.name == "error_message":
        return MESSAGES.get(error)
    if field.name in _UNKNOWN:
        return _UNKNOWN[field.name]
    return field.absent()
