"""Guards: each checks one kind of request, and passes the allowed part to the handler.

A guard is used only if an authorizer is configured, so other clusters pay nothing for it. It
answers the denied rows of a request with Kafka's error, and never reveals whether a resource
exists that the client may not describe.
"""

from collections.abc import Callable
from dataclasses import replace
from types import GeneratorType
from typing import Any, TypeAlias

from tidelog.api.access.permits import DENIED, permits
from tidelog.api.access.refused import denied_rows, refused, with_rows
from tidelog.api.handler import Handler, Handling, Request
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import canonical_response
from tidelog.security.acls import CLUSTER_NAME, AclOperation, AclResource

Guard: TypeAlias = Callable[[Request, Handler], Any]
"""Returns what the handler returns for the allowed part of a request, with the denied part."""

NameOf: TypeAlias = Callable[[Request, Any], str | None]
"""The name of a row's resource; None if there is no such resource, so the handler answers."""


def nothing_needed(request: Request, handler: Handler) -> Any:
    """For APIs that every client may use."""
    return handler(request)


def checked_by_handler(request: Request, handler: Handler) -> Any:
    """For APIs whose handler checks the operations by itself."""
    return handler(request)


def cluster(operation: AclOperation, asked: str = "", answered: str = "") -> Guard:
    """The whole request needs the operation on the cluster."""
    return whole(operation, AclResource.CLUSTER, "", asked, answered)


def whole(
    operation: AclOperation,
    resource: AclResource,
    field: str,
    asked: str = "",
    answered: str = "",
) -> Guard:
    """The whole request needs the operation on the resource that a field names, unless null."""

    def guard(request: Request, handler: Handler) -> Any:
        name = getattr(request.message, field) if field else CLUSTER_NAME
        if name is None or permits(request, operation, resource, name):
            return handler(request)
        return refused(request, DENIED[resource], asked, answered)

    return guard


def both(first: Guard, second: Guard) -> Guard:
    """The second guard checks what the first one has allowed."""

    def guard(request: Request, handler: Handler) -> Any:
        return first(request, lambda allowed: second(allowed, handler))

    return guard


def unless(operation: AclOperation, otherwise: Guard) -> Guard:
    """A client that may use the operation on the cluster needs nothing else."""

    def guard(request: Request, handler: Handler) -> Any:
        if permits(request, operation, AclResource.CLUSTER, logs_denial=False):
            return handler(request)
        return otherwise(request, handler)

    return guard


def topic_name(request: Request, topic: Any) -> str | None:
    """The name of a topic that a request names, or identifies by its id."""
    if isinstance(topic, str):
        return topic
    name: str | None = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if name or getattr(topic, "topic_id", None) is None:
        return name or ""
    return request.image.topic_names.get(topic.topic_id)


def bare_name(_: Request, name: str) -> str:
    return name


def each(
    operation: AclOperation,
    resource: AclResource,
    asked: str,
    answered: str,
    name_of: NameOf = topic_name,
) -> Guard:
    """Each row of the request needs the operation on the resource that it names."""

    def is_allowed(request: Request, row: Any) -> bool:
        name = name_of(request, row)
        return name is None or permits(request, operation, resource, name)

    return each_row(is_allowed, DENIED[resource], asked, answered)


def each_row(
    is_allowed: Callable[[Request, Any], bool], error: ErrorCode, asked: str, answered: str
) -> Guard:
    """Rows that are not allowed get the error; the handler gets the other rows."""

    def guard(request: Request, handler: Handler) -> Any:
        rows = getattr(request.message, asked)
        allowed = [is_allowed(request, row) for row in rows or ()]
        if all(allowed):
            return handler(request)
        kept = tuple(row for row, is_kept in zip(rows, allowed, strict=True) if is_kept)
        others = [row for row, is_kept in zip(rows, allowed, strict=True) if not is_kept]
        cls = canonical_response(request.message.__api_key__)
        denied = denied_rows(cls, answered, others, error)
        if not kept:
            return with_rows(cls, answered, denied)
        request.message = replace(request.message, **{asked: kept})
        return with_denied(request, handler, answered, denied)

    return guard


def with_denied(
    request: Request, handler: Handler, answered: str, denied: tuple[Any, ...]
) -> Handling:
    """Add rows to the response of the handler, unless the response is an error as a whole."""
    response = handler(request)
    if isinstance(response, GeneratorType):
        response = yield from response
    if getattr(response, "error_code", ErrorCode.none) is not ErrorCode.none:
        return response
    return replace(response, **{answered: (*getattr(response, answered), *denied)})


def any_of_names(operation: AclOperation, field: str) -> Guard:
    """The whole request needs the operation on each topic that a field lists."""

    def guard(request: Request, handler: Handler) -> Any:
        names = getattr(request.message, field) or ()
        if all(permits(request, operation, AclResource.TOPIC, name) for name in names):
            return handler(request)
        return refused(request, ErrorCode.topic_authorization_failed)

    return guard


def guarded(handler: Handler, guard: Guard) -> Handler:
    """The handler behind its guard."""

    def handle(request: Request) -> Any:
        return guard(request, handler)

    return handle
