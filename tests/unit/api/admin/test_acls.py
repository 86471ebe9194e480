"""ACLs: there is no authorizer, so every request gets SECURITY_DISABLED."""

from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from tests.unit.api.support import ask, request

from tidelog.api.admin import acls
from tidelog.model.errors import ErrorCode


def test_describing():
    response = acls.describe_acls(request(ask(29)))

    assert response.error_code is ErrorCode.security_disabled
    assert response.error_message == "No Authorizer is configured on the broker"


def test_creating():
    creation = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )

    response = acls.create_acls(request(ask(30, creations=(creation, creation))))

    assert [result.error_code for result in response.results] == [ErrorCode.security_disabled] * 2


def test_deleting():
    filter_ = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=3,
        permission_type=3,
    )

    [result] = acls.delete_acls(request(ask(31, filters=(filter_,)))).filter_results

    assert (result.error_code, result.error_message) == (
        ErrorCode.security_disabled,
        "No Authorizer is configured.",
    )
