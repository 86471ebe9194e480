"""AlterUserScramCredentials: SCRAM credentials in the metadata log (KIP-554, KIP-900)."""

from collections import Counter
from typing import TypeAlias

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import (
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tidelog.security.sasl.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS, keys_of

_Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    image: ClusterImage, request: AlterUserScramCredentialsRequest, _: DecideContext
) -> Decision:
    """Set and delete credentials; all changes of a user are refused if one of them is."""
    changes: tuple[_Change, ...] = (*request.deletions, *request.upsertions)
    times = Counter((one.name, one.mechanism) for one in changes)
    refusals: dict[str, Refusal] = {}
    for one in changes:
        found = _check(image, one, times[one.name, one.mechanism])
        if found is not NO_FAULT:
            refusals.setdefault(one.name, found)
    records: list[MetadataRecord] = []
    for deletion in request.deletions:
        if deletion.name not in refusals:
            records.append(
                RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism)
            )
    records += [_record(one) for one in request.upsertions if one.name not in refusals]
    results = tuple(
        _result(name, refusals.get(name, NO_FAULT))
        for name in dict.fromkeys(one.name for one in changes)
    )
    response = AlterUserScramCredentialsResponse(throttle_time=NOT_THROTTLED, results=results)
    return Decision(tuple(records), response)


def _result(name: str, refusal: Refusal) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=name, error_code=refusal.error, error_message=refusal.message
    )


def _check(image: ClusterImage, one: _Change, times: int) -> Refusal:
    if not one.name:
        return Refusal(ErrorCode.unacceptable_credential, "Username must not be empty")
    if one.mechanism not in HASHES:
        return Refusal(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if times > 1:
        return Refusal(
            ErrorCode.duplicate_resource,
            "A user credential cannot be altered twice in the same request",
        )
    if isinstance(one, ScramCredentialDeletion):
        if (one.name, one.mechanism) in image.scram:
            return NO_FAULT
        return Refusal(
            ErrorCode.resource_not_found,
            "Attempt to delete a user credential that does not exist",
        )
    if one.iterations < MIN_ITERATIONS:
        return Refusal(ErrorCode.unacceptable_credential, "Too few iterations")
    if one.iterations > MAX_ITERATIONS:
        return Refusal(ErrorCode.unacceptable_credential, "Too many iterations")
    return NO_FAULT


def _record(one: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    keys = keys_of(one.salted_password, one.salt, one.iterations, HASHES[one.mechanism])
    return UserScramCredentialRecord(
        name=one.name,
        mechanism=one.mechanism,
        salt=keys.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=keys.iterations,
    )
