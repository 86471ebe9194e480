"""DescribeAcls (key 29), CreateAcls (30), DeleteAcls (31), versions 1-3.

There is no authorizer, so every request gets SECURITY_DISABLED, as in Kafka. Admin tools accept
this answer. If these APIs were missing, the tools would assume a Kafka version that predates ACLs.
"""

from datetime import timedelta

from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.response import DeleteAclsFilterResult, DeleteAclsResponse
from kio.schema.describe_acls.v3.response import DescribeAclsResponse

from tidelog.api.handler import Request
from tidelog.model.errors import ErrorCode

_NO_AUTHORIZER = "No Authorizer is configured."


def describe_acls(_: Request) -> DescribeAclsResponse:
    """Returns SECURITY_DISABLED, because there is no authorizer."""
    return DescribeAclsResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.security_disabled,
        error_message="No Authorizer is configured on the broker",
        resources=(),
    )


def create_acls(request: Request) -> CreateAclsResponse:
    """Returns SECURITY_DISABLED, because there is no authorizer."""
    return CreateAclsResponse(
        throttle_time=timedelta(0),
        results=tuple(
            AclCreationResult(error_code=ErrorCode.security_disabled, error_message=_NO_AUTHORIZER)
            for _ in request.message.creations
        ),
    )


def delete_acls(request: Request) -> DeleteAclsResponse:
    """Returns SECURITY_DISABLED, because there is no authorizer."""
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
