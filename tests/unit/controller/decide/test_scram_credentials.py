"""AlterUserScramCredentials: keys in place of passwords, and Kafka's errors."""

from typing import Any

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.unit.controller.support import cluster, context

from tidelog.controller.decide.decide import decide
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.security.sasl.scram import keys_of


def upsertion(name: str = "carol", mechanism: int = 1, iterations: int = 4096) -> Any:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=b"salted password",
    )


def deletion(name: str = "carol", mechanism: int = 1) -> Any:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    image: ClusterImage, upsertions: tuple[Any, ...] = (), deletions: tuple[Any, ...] = ()
) -> tuple[ClusterImage, dict[str, ErrorCode]]:
    asked = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    decision = decide(image, asked, context(image))
    end = image.offset + len(decision.records)
    errors = {result.user: result.error_code for result in decision.response.results}
    return apply_all(image, decision.records, end, 1), errors


def test_a_credential_is_set_changed_and_deleted() -> None:
    image, errors = alter(cluster(3), (upsertion(), upsertion(mechanism=2)))
    assert errors == {"carol": ErrorCode.none}
    assert list(image.scram) == [("carol", 1), ("carol", 2)]
    keys = keys_of(b"salted password", b"salt", 4096, "sha256")
    stored = image.scram["carol", 1]
    assert (stored.stored_key, stored.server_key) == (keys.stored_key, keys.server_key)
    assert b"salted password" not in (stored.stored_key, stored.server_key)

    image, _ = alter(image, (upsertion(iterations=8192),))
    assert image.scram["carol", 1].iterations == 8192

    image, errors = alter(image, deletions=(deletion(),))
    assert errors == {"carol": ErrorCode.none}
    assert list(image.scram) == [("carol", 2)]


def test_invalid_changes_are_refused_user_by_user() -> None:
    image, errors = alter(
        cluster(3),
        (
            upsertion("few", iterations=4095),
            upsertion("many", iterations=16385),
            upsertion("odd", mechanism=3),
            upsertion("twice"),
            upsertion("twice"),
            upsertion(""),
            upsertion("good"),
        ),
        (deletion("nobody"),),
    )
    assert errors == {
        "nobody": ErrorCode.resource_not_found,
        "few": ErrorCode.unacceptable_credential,
        "many": ErrorCode.unacceptable_credential,
        "odd": ErrorCode.unsupported_sasl_mechanism,
        "twice": ErrorCode.duplicate_resource,
        "": ErrorCode.unacceptable_credential,
        "good": ErrorCode.none,
    }
    assert list(image.scram) == [("good", 1)]
