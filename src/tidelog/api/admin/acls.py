"""DescribeAcls (key 29), CreateAcls (30), DeleteAcls (31), versions 1-3.

The controller decides on changes (KIP-140). A broker describes the entries of its own image, by
resource. Without an authorizer, every request gets SECURITY_DISABLED, as in Kafka. Admin tools
accept this answer. If these APIs were missing, the tools would assume a Kafka version that
predates ACLs.
"""

from datetime import timedelta
from typing import Any

from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse
from kio.schema.describe_acls.v3.response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.security.acl_filters import AclFilter

_NO_AUTHORIZER = "No Authorizer is configured."


def describe_acls(request: Request) -> DescribeAclsResponse:
    """Lists the access control entries that match a filter."""
    if request.authorizer is None:
        no_authorizer = "No Authorizer is configured on the broker"
        return _described(ErrorCode.security_disabled, no_authorizer)
    wanted = AclFilter.from_request(request.message)
    problem = wanted.problem()
    if problem is not None:
        return _described(ErrorCode.invalid_request, problem)
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for entry in request.image.acls.values():
        if wanted.matches(entry):
            pattern = (entry.resource_type, entry.resource_name, entry.pattern_type)
            description = AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            resources.setdefault(pattern, []).append(description)
    return _described(
        ErrorCode.none,
        None,
        tuple(
            DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern, acls=tuple(entries)
            )
            for (kind, name, pattern), entries in resources.items()
        ),
    )


def _described(error: ErrorCode, message: str | None, resources: Any = ()) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        throttle_time=timedelta(0), error_code=error, error_message=message, resources=resources
    )


def _change(request: Request) -> Handling:
    return (yield ChangeMetadata(request.message))


def create_acls(request: Request) -> Any:
    """Adds access control entries."""
    if request.authorizer is not None:
        return _change(request)
    return CreateAclsResponse(
        throttle_time=timedelta(0),
        results=tuple(
            AclCreationResult(error_code=ErrorCode.security_disabled, error_message=_NO_AUTHORIZER)
            for _ in request.message.creations
        ),
    )


def delete_acls(request: Request) -> Any:
    """Removes the access control entries that match filters."""
    if request.authorizer is not None:
        return _change(request)
    return DeleteAclsResponse(
        throttle_time=timedelta(0),
        filter_results=tuple(
            DeleteAclsFilterResult(
                error_code=ErrorCode.security_disabled,
                error_message=_NO_AUTHORIZER,
                matching_acls=(),
            )
            for _ in request.message.filters
        ),
    )
