"""Makes requests, decodes and handles them, and encodes the answers, as the node does."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from kio.serial import entity_writer
from tests.unit.api.support import TOPIC_ID, request

from tidelog.api.groups.internal_topics import SHARE_GROUP_STATE
from tidelog.api.handler import Disconnect, Encoded
from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import Api
from tidelog.coordination.groups.replies import refusal
from tidelog.coordination.share_state import share_messages
from tidelog.coordination.transactions.requests import refused
from tidelog.model import authentication, effects, share_effects
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import messages
from tidelog.protocol.messages.canonical import canonical_response
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import MessageField, fields_of, response_class


def minimal(cls: Any) -> Any:
    """A message without any optional content."""
    return cls(**{field.name: field.absent() for field in fields_of(cls)})


def one_of_each(cls: Any) -> Any:
    """A message with one element in every array."""
    return cls(**{field.name: _one(field) for field in fields_of(cls)})


def _one(field: MessageField) -> Any:
    if field.entity is not None:
        element = one_of_each(field.entity)
    elif field.is_array:
        element = {"string": "orders", "uuid": TOPIC_ID}.get(field.kafka_type, 0)
    elif field.name in ("name", "topic"):
        return "orders"
    elif field.name in ("client_software_name", "client_software_version"):
        return "tester"
    else:
        return field.absent()
    return (element,) if field.is_array else element


RESULTS: dict[type, Callable[[Any, int], Any]] = {
    effects.AppendBatches: lambda e, v: [effects.AppendResult(ErrorCode.none)] * len(e.appends),
    effects.FetchBatches: lambda e, v: [effects.FetchResult(ErrorCode.none)] * len(e.reads),
    effects.FindOffsets: lambda e, v: [effects.OffsetFound(ErrorCode.none)] * len(e.queries),
    effects.FindEpochEnds: lambda e, v: [effects.EpochFound(ErrorCode.none)] * len(e.queries),
    effects.DeleteRecordsBefore: lambda e, v: (
        [effects.RecordsDeleted(ErrorCode.none)] * len(e.deletions)
    ),
    effects.DescribeProducers: lambda e, v: (
        [effects.ProducersFound(ErrorCode.none)] * len(e.partitions)
    ),
    effects.DescribeDirectories: lambda e, v: [
        effects.DescribedDirectory(ErrorCode.none, "/logs", ())
    ],
    effects.MoveReplicas: lambda e, v: [ErrorCode.none] * len(e.moves),
    effects.AwaitElections: lambda e, v: (),
    effects.ChangeMetadata: lambda e, v: _decided(e.request),
    authentication.BeginAuthentication: lambda e, v: (ErrorCode.illegal_sasl_state, ()),
    authentication.Authenticate: lambda e, v: authentication.SaslAnswer(
        ErrorCode.illegal_sasl_state
    ),
    effects.AskQuorum: lambda e, v: minimal(canonical_response(e.request.__api_key__)),
    effects.AppendInTransaction: lambda e, v: (
        [effects.AppendResult(ErrorCode.none)] * len(e.appends)
    ),
    effects.WriteMarkers: lambda e, v: [ErrorCode.none] * len(e.markers),
    effects.Coordinate: lambda e, v: _refused(e, v),
    effects.CoordinateAll: lambda e, v: [_refused(e, v)],
    share_effects.AcquireRecords: lambda e, v: (
        [share_effects.RecordsAcquired(ErrorCode.none)] * len(e.partitions)
    ),
    share_effects.AcknowledgeRecords: lambda e, v: (
        [share_effects.RecordsAcknowledged(ErrorCode.none)] * len(e.acknowledgements)
    ),
    share_effects.ReleaseRecords: lambda e, v: None,
}
"""For each type of effect, the result that a node without data gives in this version."""


def _refused(effect: effects.Coordinate | effects.CoordinateAll, version: int) -> Any:
    error = ErrorCode.not_coordinator
    if effect.topic == "__transaction_state":
        return refused(effect.request, error)
    if effect.topic == SHARE_GROUP_STATE:
        return share_messages.refused(effect.request, error)
    return refusal(effect.request, error, version)


def _decided(message: Any) -> Any:
    """The controller's response to a change, with one result for each requested resource."""
    response = canonical_response(message.__api_key__)
    for field in fields_of(response):
        asked = getattr(message, "resources", ())
        if field.name == "responses" and asked:
            element = field.entity
            results = tuple(
                element(
                    error_code=ErrorCode.none,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in asked
            )
            return _with(response, responses=results)
        if field.name == "producer_id_len":
            return _with(response, producer_id_len=1000)
    return minimal(response)


def _with(cls: Any, **fields: Any) -> Any:
    return cls(**{**{field.name: field.absent() for field in fields_of(cls)}, **fields})


def handle(api: Api, version: int, asked: Any) -> None:
    """Decode and handle a request, and encode the answer, as the node does."""
    body = BytesIO()
    entity_writer(type(asked))(body, asked)
    frame = memoryview(bytearray(body.getvalue()))
    if api.codec is not None:
        message = api.codec.decode(version, frame, 0)
    else:
        message = messages.decode_request(api.key, version, frame, 0)
    listener = "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"
    answer = _drive(api.handler(request(message, version, listener=listener)), version)
    if answer is None or isinstance(answer, Disconnect):
        assert api.name == "Produce", "only acks=0 is never answered"
    elif api.codec is not None:
        assert api.codec.encode(version, 7, answer)
    elif isinstance(answer, Encoded):
        [chunk] = answer.chunks
        decode(response_class(api.key, version), chunk, 0)
    else:
        assert isinstance(answer, canonical_response(api.key))
        frame = memoryview(messages.encode_response(api.key, version, 7, answer))[4:]
        assert type(messages.decode_response(api.key, version, frame)) is type(answer)


def _drive(handling: Any, version: int) -> Any:
    if not hasattr(handling, "send"):
        return handling
    result: Any = None
    while True:
        try:
            effect = handling.send(result)
        except StopIteration as end:
            return end.value
        result = RESULTS[type(effect)](effect, version)
