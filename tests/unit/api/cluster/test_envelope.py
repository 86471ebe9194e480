"""A broker forwards a client's request in an envelope, with the client's identity (F86)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.envelope.v0.request import EnvelopeRequest
from kio.schema.envelope.v0.response import EnvelopeResponse
from tests.unit.api.access.checked_requests import authorizer, entry
from tests.unit.api.support import Effects, request

from tidelog.api.cluster.envelope import seal
from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import served
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.headers import metadata_offset_of
from tidelog.protocol.messages.messages import decode_response, encode_request
from tidelog.security.acls import AclOperation, AclResource
from tidelog.security.authorizer import AclAuthorizer
from tidelog.security.principal import Principal, encode_principal

CREATE_TOPICS, ENVELOPE, FETCH = 19, 58, 1
BROKER, ALICE = Principal("User", "broker"), Principal("User", "alice")
TOPIC = CreatableTopic(
    name="payments", num_partitions=1, replication_factor=1, assignments=(), configs=()
)
CREATION = CreateTopicsRequest(topics=(TOPIC,))
MAY_FORWARD = entry(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, principal="User:broker")
MAY_CREATE = entry(AclOperation.CREATE, AclResource.TOPIC, "payments")
MAY_DESCRIBE = entry(AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, "payments")


def created(error: ErrorCode = ErrorCode.none) -> CreateTopicsResponse:
    result = CreatableTopicResult(
        name="payments", topic_id=None, error_code=error, error_message=None, configs=None
    )
    return CreateTopicsResponse(throttle_time=timedelta(0), topics=(result,))


def receive(message: EnvelopeRequest, rules: AclAuthorizer | None, *results: Any) -> Any:
    """The answer of a controller to an envelope that a broker sends, and the handler's effects."""
    api = served(ListenerKind.CONTROLLER, is_guarded=rules is not None)[ENVELOPE]
    effects = Effects(*results)
    made = request(message, 0, listener="CONTROLLER", principal=BROKER, authorizer=rules)
    return effects.drive(api.handler(made)), effects.asked


def content(answer: EnvelopeResponse) -> Any:
    assert answer.error_code is ErrorCode.none
    assert answer.response_data is not None
    return decode_response(CREATE_TOPICS, 7, answer.response_data)


SEALED = seal(CREATION, 7, "app", ALICE, "10.0.0.9")


def test_the_request_in_an_envelope_is_answered_in_the_envelope() -> None:
    answer, asked = receive(SEALED, None, created())

    assert asked == [ChangeMetadata(CREATION)]
    assert content(answer).topics[0].name == "payments"
    assert metadata_offset_of(CREATE_TOPICS, 7, answer.response_data) == 42


def test_f86_the_clients_rights_decide_and_not_the_brokers() -> None:
    everything = entry(AclOperation.ALL, AclResource.TOPIC, principal="User:broker")
    answer, asked = receive(SEALED, authorizer(MAY_FORWARD, everything))

    assert asked == []
    [topic] = content(answer).topics
    assert topic.error_code is ErrorCode.topic_authorization_failed


def test_f86_a_client_that_may_create_the_topic_creates_it() -> None:
    rules = authorizer(MAY_FORWARD, MAY_CREATE, MAY_DESCRIBE)
    answer, asked = receive(SEALED, rules, created())

    assert asked == [ChangeMetadata(CREATION)]
    assert content(answer).topics[0].error_code is ErrorCode.none


def test_f86_the_address_of_the_client_counts() -> None:
    elsewhere = MAY_CREATE._replace(host="10.0.0.8")
    answer, _ = receive(SEALED, authorizer(MAY_FORWARD, elsewhere))
    assert content(answer).topics[0].error_code is ErrorCode.topic_authorization_failed

    here = MAY_CREATE._replace(host="10.0.0.9")
    answer, _ = receive(SEALED, authorizer(MAY_FORWARD, here, MAY_DESCRIBE), created())
    assert content(answer).topics[0].error_code is ErrorCode.none


def test_f86_only_a_broker_may_send_an_envelope() -> None:
    super_alice = authorizer(super_users=frozenset({"User:alice"}))
    answer, asked = receive(SEALED, super_alice)

    assert asked == []
    assert answer == EnvelopeResponse(error_code=ErrorCode.cluster_authorization_failed)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request_principal": None}, ErrorCode.principal_deserialization_failure),
        ({"request_principal": b"\0\0\x7f"}, ErrorCode.principal_deserialization_failure),
        ({"client_host_address": b"\1\2\3"}, ErrorCode.invalid_request),
        ({"request_data": b"\0"}, ErrorCode.invalid_request),
        ({"request_data": SEALED.request_data[:-9]}, ErrorCode.invalid_request),
        ({"request_data": b"\0\x13\x7f\xff" + bytes(7)}, ErrorCode.unsupported_version),
        ({"request_data": b"\0\x01\0\x0d" + bytes(6)}, ErrorCode.invalid_request),
        ({"request_data": encode_request(SEALED, 0, 1, None)[4:]}, ErrorCode.invalid_request),
    ],
)
def test_a_bad_envelope_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    answer, asked = receive(replace(SEALED, **changes), None)

    assert asked == []
    assert answer == EnvelopeResponse(error_code=error)


def test_a_node_that_is_not_the_controller_says_so() -> None:
    answer, _ = receive(SEALED, None, created(ErrorCode.not_controller))

    assert answer == EnvelopeResponse(error_code=ErrorCode.not_controller)


def test_an_ipv6_address_survives() -> None:
    sealed = seal(CREATION, 7, None, ALICE, "fe80::1")

    assert len(sealed.client_host_address) == 16
    assert sealed.request_principal == encode_principal(ALICE)
