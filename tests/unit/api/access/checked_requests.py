"""Sends requests through the guards of the registry, with an authorizer that a test chooses."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from io import BytesIO
from typing import Any

from kio.serial import entity_writer
from tests.unit.api.round_trip import RESULTS, one_of_each
from tests.unit.api.support import TOPIC_ID, request

from tidelog.api.handler import Disconnect, Encoded
from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import Api
from tidelog.model.effects import Pause
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import messages
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import request_class, response_class
from tidelog.security.acls import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)
from tidelog.security.authorizer import AclAuthorizer, AuthorizerSettings
from tidelog.security.principal import Principal

ALICE = Principal("User", "alice")
AUTHORIZATION_ERRORS = frozenset(code for code in ErrorCode if "authorization" in code.name)
EVERY_RESOURCE = (
    AclResource.TOPIC,
    AclResource.GROUP,
    AclResource.CLUSTER,
    AclResource.TRANSACTIONAL_ID,
    AclResource.DELEGATION_TOKEN,
    AclResource.USER,
)


def entry(
    operation: AclOperation,
    resource: AclResource,
    name: str = "*",
    permission: AclPermission = AclPermission.ALLOW,
    pattern: AclPattern = AclPattern.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AclEntry:
    if resource is AclResource.CLUSTER and name == "*":
        name = CLUSTER_NAME
    return AclEntry(resource, name, pattern, principal, host, operation, permission)


def authorizer(*entries: AclEntry, **settings: Any) -> AclAuthorizer:
    return AclAuthorizer(entries, AuthorizerSettings(**settings))


class Checked:
    """The response to a request, and the effects that its handler asked for."""

    def __init__(self, response: Any, effects: list[Any]) -> None:
        self.response = response
        self.effects = effects
        self.errors = set(error_codes(response))

    @property
    def denials(self) -> set[ErrorCode]:
        return self.errors & AUTHORIZATION_ERRORS


def check(api: Api, version: int, rules: AclAuthorizer | None, asked: Any = None) -> Checked:
    """Handle a request with one element of each array, or the given one."""
    listener = "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"
    made = request(
        _message(api, version, asked),
        version,
        listener=listener,
        principal=ALICE,
        authorizer=rules,
    )
    effects: list[Any] = []
    handling = api.guarded(made)
    if not hasattr(handling, "send"):
        return Checked(_readable(api, version, handling), effects)
    result: Any = None
    while True:
        try:
            effect = handling.send(result)
        except StopIteration as end:
            return Checked(_readable(api, version, end.value), effects)
        result = None
        if not isinstance(effect, Pause):
            effects.append(effect)
            result = RESULTS[type(effect)](effect, version)


def _message(api: Api, version: int, asked: Any) -> Any:
    if asked is None:
        asked = one_of_each(request_class(api.key, version))
        if api.name != "Metadata" or version >= _FIRST_METADATA_BY_ID:
            asked = _existing(asked)
    body = BytesIO()
    entity_writer(type(asked))(body, asked)
    frame = memoryview(bytearray(body.getvalue()))
    if api.codec is not None:
        return api.codec.decode(version, frame, 0)
    return messages.decode_request(api.key, version, frame, 0)


_FIRST_METADATA_BY_ID = 12
"""Versions 10 and 11 have topic ids, but Kafka refuses requests that use them."""


def _existing(asked: Any) -> Any:
    """The message about the topic that exists, where it identifies one by its id."""
    changes: dict[str, Any] = {}
    for field in fields(asked):
        value = getattr(asked, field.name)
        if field.name == "topic_id":
            changes[field.name] = TOPIC_ID
        elif field.name == "resource_type":
            changes[field.name] = AclResource.TOPIC
        elif field.name == "cursor":
            changes[field.name] = None
        elif isinstance(value, tuple):
            changes[field.name] = tuple(
                _existing(item) if is_dataclass(item) else item for item in value
            )
    return replace(asked, **changes)


def _readable(api: Api, version: int, answer: Any) -> Any:
    if isinstance(answer, Encoded):
        [chunk] = answer.chunks
        return decode(response_class(api.key, version), chunk, 0)
    if answer is not None and not isinstance(answer, Disconnect) and api.codec is None:
        # The response must be one that the version can carry.
        assert messages.encode_response(api.key, version, 7, answer)
    return answer


def error_codes(value: Any) -> Iterator[ErrorCode]:
    """Every error code in a response, however deep."""
    if isinstance(value, ErrorCode):
        yield value
    elif isinstance(value, Disconnect):
        yield from (code for code in ErrorCode if code.name in value.reason)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from error_codes(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from error_codes(getattr(value, field.name))
