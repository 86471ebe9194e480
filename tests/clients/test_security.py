"""confluent-kafka on a SASL listener with ACLs: what is allowed works, the rest is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.clients.schema import Schemas
from tests.clients.systems import HOST, PATIENCE, Broker, free_block

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = 'user_admin="admin-secret" user_alice="alice-secret"'


class SecuredBroker:
    """A broker with a listener for each test's clients, and one for the fixture's own checks."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.bootstrap = f"{HOST}:{port}"
        self._admins: dict[str, AdminClient] = {}

    def config(self, user: str, password: str | None = None, mechanism: str = "PLAIN") -> Any:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password or f"{user}-secret",
            "log_level": 0,
        }

    def admin(self, user: str = "admin") -> AdminClient:
        if user not in self._admins:
            self._admins[user] = AdminClient(self.config(user))
        return self._admins[user]


@pytest.fixture(scope="module")
def secured(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    ports = free_block()
    directory: Path = tmp_path_factory.mktemp("secured")
    broker = system(
        directory,
        schemas,
        {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "CLIENTS:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.clients.plain.sasl.jaas.config": f"{MODULE} required {USERS};",
            "listener.name.clients.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.clients.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
        },
    )
    clients = f"CLIENTS://{HOST}:{ports.first}"
    lines = [
        f"{line},{clients}" if line.startswith(("listeners=", "advertised.listeners=")) else line
        for line in broker.config.read_text().splitlines()
    ]
    broker.config.write_text("\n".join(lines) + "\n")
    broker.format()
    broker.start()
    try:
        yield SecuredBroker(broker, ports.first)
    finally:
        broker.kill()
        ports.release()


def create(secured: SecuredBroker, topic: str) -> None:
    made = secured.admin().create_topics([NewTopic(topic, 1, 1)])
    made[topic].result(PATIENCE)


def allow(
    secured: SecuredBroker, user: str, operation: AclOperation, kind: ResourceType, name: str
) -> None:
    binding = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    for future in secured.admin().create_acls([binding]).values():
        future.result(PATIENCE)


def produced(secured: SecuredBroker, topic: str, **login: str) -> KafkaError | None:
    """The error of one record, or None if it was acknowledged."""
    found: list[KafkaError | None] = []
    producer = Producer({**secured.config(**login), "message.timeout.ms": 60_000})
    producer.produce(topic, b"hello", on_delivery=lambda error, _: found.append(error))
    producer.flush(PATIENCE)
    assert len(found) == 1
    return found[0]


def consumed(secured: SecuredBroker, topic: str, user: str, group: str) -> Any:
    """The value of the first record, or the code of the first error."""
    consumer = Consumer(
        {**secured.config(user), "group.id": group, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None
            error = message.error()
            return message.value() if error is None else error.code()
    finally:
        consumer.close()


def test_wrong_credentials_are_refused(secured: SecuredBroker) -> None:
    errors: list[KafkaError] = []
    client = AdminClient(
        {**secured.config("alice", "guess"), "error_cb": errors.append, "retries": 0}
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)
    client.poll(1)
    assert KafkaError._AUTHENTICATION in {error.code() for error in errors}


def test_what_is_not_allowed_is_denied_and_what_is_allowed_works(
    secured: SecuredBroker, topic: str
) -> None:
    create(secured, topic)
    denied = produced(secured, topic, user="alice")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert topic not in secured.admin("alice").list_topics(timeout=PATIENCE).topics

    allow(secured, "alice", AclOperation.WRITE, ResourceType.TOPIC, topic)
    assert produced(secured, topic, user="alice") is None
    assert consumed(secured, topic, "alice", "g") == KafkaError.GROUP_AUTHORIZATION_FAILED

    allow(secured, "alice", AclOperation.READ, ResourceType.GROUP, "g")
    assert consumed(secured, topic, "alice", "g") == KafkaError.TOPIC_AUTHORIZATION_FAILED

    allow(secured, "alice", AclOperation.READ, ResourceType.TOPIC, topic)
    assert consumed(secured, topic, "alice", "g") == b"hello"


def test_acls_are_described_and_deleted(secured: SecuredBroker) -> None:
    allow(secured, "zoe", AclOperation.READ, ResourceType.TOPIC, "described")
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        "described",
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    [found] = secured.admin().describe_acls(wanted).result(PATIENCE)
    assert (found.principal, found.operation) == ("User:zoe", AclOperation.READ)
    [refused] = secured.admin("alice").create_acls([found]).values()
    with pytest.raises(KafkaException) as denied:
        refused.result(PATIENCE)
    assert denied.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED

    [deleted] = secured.admin().delete_acls([wanted])[wanted].result(PATIENCE)
    assert deleted.principal == "User:zoe"
    assert secured.admin().describe_acls(wanted).result(PATIENCE) == []


@pytest.mark.parametrize("number", [256, 512])
def test_a_user_with_a_scram_credential(secured: SecuredBroker, topic: str, number: int) -> None:
    create(secured, topic)
    mechanism = f"SCRAM-SHA-{number}"
    info = ScramCredentialInfo(ScramMechanism[f"SCRAM_SHA_{number}"], 4096)
    user = f"carol{number}"
    upsertion = UserScramCredentialUpsertion(user, info, b"her secret")
    altered = secured.admin().alter_user_scram_credentials([upsertion])
    altered[user].result(PATIENCE)
    described = secured.admin().describe_user_scram_credentials([user])[user].result(PATIENCE)
    assert [one.iterations for one in described.scram_credential_infos] == [4096]

    allow(secured, user, AclOperation.WRITE, ResourceType.TOPIC, topic)
    login = {"user": user, "password": "her secret", "mechanism": mechanism}
    assert produced(secured, topic, **login) is None
