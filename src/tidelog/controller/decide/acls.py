"""CreateAcls and DeleteAcls: access control entries in the metadata log (KIP-140, KIP-290)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kio.schema.create_acls.v3.request import CreateAclsRequest
from kio.schema.create_acls.v3.response import AclCreationResult, CreateAclsResponse
from kio.schema.delete_acls.v3.request import DeleteAclsRequest
from kio.schema.delete_acls.v3.response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)

from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from tidelog.security.acl_filters import AclFilter, entry_problem
from tidelog.security.acls import AclEntry


def create_acls(
    image: ClusterImage, request: CreateAclsRequest, context: DecideContext
) -> Decision:
    """Add the valid entries; an entry that exists already is added only once."""
    known = set(image.acls.values())
    records, results = [], []
    for creation in request.creations:
        entry = AclEntry(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        problem = entry_problem(entry)
        error = ErrorCode.none if problem is None else ErrorCode.invalid_request
        results.append(AclCreationResult(error_code=error, error_message=problem))
        if problem is None and entry not in known:
            known.add(entry)
            records.append(_record(context.dice.uuid(), entry))
    response = CreateAclsResponse(throttle_time=NOT_THROTTLED, results=tuple(results))
    return Decision(tuple(records), response)


def _record(id_: UUID, entry: AclEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=id_,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def delete_acls(image: ClusterImage, request: DeleteAclsRequest, _: DecideContext) -> Decision:
    """Remove the entries that match any of the filters."""
    removed: dict[UUID, None] = {}
    results = []
    for asked in request.filters:
        wanted = AclFilter.from_request(asked)
        problem = wanted.problem()
        if problem is not None:
            results.append(
                DeleteAclsFilterResult(
                    error_code=ErrorCode.invalid_request, error_message=problem, matching_acls=()
                )
            )
            continue
        found = {id_: entry for id_, entry in image.acls.items() if wanted.matches(entry)}
        removed.update(dict.fromkeys(found))
        results.append(_deleted(found))
    records = tuple(RemoveAccessControlEntryRecord(id=id_) for id_ in removed)
    response = DeleteAclsResponse(throttle_time=NOT_THROTTLED, filter_results=tuple(results))
    return Decision(records, response)


def _deleted(found: Mapping[UUID, AclEntry]) -> Any:
    return DeleteAclsFilterResult(
        error_code=ErrorCode.none,
        error_message=None,
        matching_acls=tuple(
            DeleteAclsMatchingAcl(
                error_code=ErrorCode.none,
                error_message=None,
                resource_type=entry.resource_type,
                resource_name=entry.resource_name,
                pattern_type=entry.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in found.values()
        ),
    )
