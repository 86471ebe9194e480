"""CreateAcls and DeleteAcls: the records of valid changes, and the errors of the others."""

from typing import Any
from uuid import UUID

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from tests.unit.controller.support import cluster, context

from tidelog.controller.decide.decide import decide
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import RemoveAccessControlEntryRecord
from tidelog.security.acls import AclEntry

READ = AclCreation(
    resource_type=2,
    resource_name="orders",
    resource_pattern_type=3,
    principal="User:alice",
    host="*",
    operation=3,
    permission_type=3,
)


def create(image: ClusterImage, *creations: AclCreation) -> tuple[ClusterImage, Any]:
    decision = decide(image, CreateAclsRequest(creations=creations), context(image))
    end = image.offset + len(decision.records)
    return apply_all(image, decision.records, end, 1), decision.response


def everything(**changes: Any) -> DeleteAclsFilter:
    values: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return DeleteAclsFilter(**{**values, **changes})


def test_an_entry_is_added_once() -> None:
    image, response = create(cluster(3), READ, READ)
    image, again = create(image, READ)

    assert list(image.acls.values()) == [AclEntry(2, "orders", 3, "User:alice", "*", 3, 3)]
    errors = [result.error_code for result in (*response.results, *again.results)]
    assert errors == [ErrorCode.none] * 3


def test_an_invalid_entry_does_not_stop_the_others() -> None:
    bad = AclCreation(
        resource_type=4,
        resource_name="other",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    image, response = create(cluster(3), bad, READ)

    assert len(image.acls) == 1
    assert [one.error_code for one in response.results] == [
        ErrorCode.invalid_request,
        ErrorCode.none,
    ]


def test_matching_entries_are_deleted_and_returned() -> None:
    image, _ = create(cluster(3), READ)
    (id_,) = image.acls
    other = everything(principal_filter="User:bob")
    asked = DeleteAclsRequest(filters=(everything(), other, everything(operation=0)))
    decision = decide(image, asked, context(image))

    assert decision.records == (RemoveAccessControlEntryRecord(id=id_),)
    found, none, refused = decision.response.filter_results
    assert [one.principal for one in found.matching_acls] == ["User:alice"]
    assert none.matching_acls == ()
    assert refused.error_code is ErrorCode.invalid_request
    assert isinstance(id_, UUID)
