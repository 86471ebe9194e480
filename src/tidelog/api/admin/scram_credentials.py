"""DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (51), version 0 (KIP-554).

The controller decides on changes. A broker describes the credentials of its own image: their
mechanisms and iterations, never their keys.
"""

from collections import Counter
from datetime import timedelta

from kio.schema.describe_user_scram_credentials.v0.response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode


def describe(request: Request) -> DescribeUserScramCredentialsResponse:
    """Lists users that have SCRAM credentials, with their mechanisms and iterations."""
    infos: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), record in sorted(request.image.scram.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=record.iterations)
        infos.setdefault(user, []).append(info)
    asked = [user.name for user in request.message.users or ()]
    times = Counter(asked)
    return DescribeUserScramCredentialsResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        error_message=None,
        results=tuple(
            _described(user, infos.get(user, []), times[user]) for user in times or infos
        ),
    )


def _described(
    user: str, infos: list[CredentialInfo], times: int
) -> DescribeUserScramCredentialsResult:
    error, message = ErrorCode.none, None
    if times > 1:
        error = ErrorCode.duplicate_resource
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    elif not infos:
        error = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {user}"
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=error,
        error_message=message,
        credential_infos=() if message else tuple(infos),
    )


def alter(request: Request) -> Handling:
    """Sets and deletes SCRAM credentials of users."""
    return (yield ChangeMetadata(request.message))
