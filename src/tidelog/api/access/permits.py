"""Asks the authorizer about one request, and logs denials as Kafka's authorizer does."""

import logging
from collections.abc import Collection
from typing import Any

from tidelog.api.handler import Request
from tidelog.model.errors import ErrorCode
from tidelog.security.acls import CLUSTER_NAME, AclOperation, AclResource
from tidelog.security.authorizer import AclSubject

audit_log = logging.getLogger("kafka.authorizer.logger")
"""Denials are logged at INFO, everything else at DEBUG, under the name of Kafka's logger."""

DENIED = {
    AclResource.TOPIC: ErrorCode.topic_authorization_failed,
    AclResource.GROUP: ErrorCode.group_authorization_failed,
    AclResource.CLUSTER: ErrorCode.cluster_authorization_failed,
    AclResource.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
    AclResource.DELEGATION_TOKEN: ErrorCode.delegation_token_authorization_failed,
    AclResource.USER: ErrorCode.delegation_token_authorization_failed,
}
"""Kafka's error for a denied operation on a resource of each type."""

TOPIC_OPERATIONS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = (
    AclOperation.CREATE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
)
GROUP_OPERATIONS = (
    AclOperation.READ,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
"""The operations that exist for each type of resource."""


def permits(
    request: Request,
    operation: AclOperation,
    resource: AclResource,
    name: str = CLUSTER_NAME,
    *,
    logs_denial: bool = True,
) -> bool:
    """Whether the client may use the operation; without an authorizer, it may."""
    authorizer = request.authorizer
    if authorizer is None:
        return True
    allowed = authorizer.allows(subject_of(request), operation, resource, name)
    level = logging.INFO if not allowed and logs_denial else logging.DEBUG
    if audit_log.isEnabledFor(level):
        _log(level, request, allowed, operation, resource, name)
    return allowed


def permits_any(request: Request, operation: AclOperation, resource: AclResource) -> bool:
    """Whether the client may use the operation on at least one resource of the type."""
    authorizer = request.authorizer
    return authorizer is None or authorizer.allows_any(subject_of(request), operation, resource)


def permitted_operations(
    request: Request,
    among: Collection[AclOperation],
    resource: AclResource,
    name: str = CLUSTER_NAME,
) -> int:
    """The operations that the client may use, as a bit field (KIP-430)."""
    if request.authorizer is None:
        return sum(1 << operation for operation in among)
    return request.authorizer.operations(subject_of(request), among, resource, name)


def cluster_operations(request: Request) -> int:
    """The operations on the cluster, for those who may describe it; 0 for all others."""
    if not permits(request, AclOperation.DESCRIBE, AclResource.CLUSTER, logs_denial=False):
        return 0
    return permitted_operations(request, CLUSTER_OPERATIONS, AclResource.CLUSTER)


def subject_of(request: Request) -> AclSubject:
    return AclSubject(request.principal, request.client_host)


def _log(
    level: int,
    request: Request,
    allowed: bool,
    operation: AclOperation,
    resource: AclResource,
    name: str,
) -> None:
    audit_log.log(
        level,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s "
        "for request = %s",
        _printable(str(request.principal)),
        "Allowed" if allowed else "Denied",
        operation.name,
        request.client_host,
        resource.name,
        _printable(name),
        _api_name(request.message),
    )


def _api_name(message: Any) -> str:
    # The handler of Produce drops its message before it checks, to free the records.
    return "Produce" if message is None else type(message).__name__.removesuffix("Request")


def _printable(text: str) -> str:
    """A client chooses its names, so control characters must not reach the log."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
