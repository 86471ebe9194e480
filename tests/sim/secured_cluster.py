"""A simulated cluster whose listeners all authenticate, and clients that log in to it."""

from typing import Any

from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from tests.sim.talk import Talk

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.sim.machines.cluster import SimCluster

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USERS = 'user_admin="admin-secret" user_alice="alice-secret" user_bob="bob-secret"'
LOGIN = f'{MODULE} required username="admin" password="admin-secret" {USERS};'
SECURED = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": LOGIN,
    "listener.name.controller.plain.sasl.jaas.config": LOGIN,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


def secured(seed: int, **changes: str) -> SimCluster:
    overrides = SECURED | {key.replace("_", "."): value for key, value in changes.items()}
    cluster = SimCluster(seed, 3, overrides)
    cluster.start()
    assert cluster.world.run_until(lambda: cluster.is_ready, 60_000), "not ready in time"
    return cluster


def begin(talk: Talk, mechanism: str) -> ErrorCode:
    error: ErrorCode = talk.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code
    return error


def step(talk: Talk, message: bytes) -> Any:
    return talk.ask(SaslAuthenticateRequest(auth_bytes=message), 2)


def log_in(talk: Talk, user: str, password: str) -> Any:
    """Authenticate with PLAIN; the last response."""
    assert begin(talk, "PLAIN") is ErrorCode.none
    return step(talk, f"\0{user}\0{password}".encode())


def client(cluster: SimCluster, node: NodeId, user: str) -> Talk:
    """A connection that has authenticated."""
    talk = Talk(cluster, node)
    assert log_in(talk, user, f"{user}-secret").error_code is ErrorCode.none
    return talk


def allow(cluster: SimCluster, user: str, operation: int, resource: int, name: str) -> None:
    creation = AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=3,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=3,
    )
    [result] = client(cluster, 1, "admin").ask(CreateAclsRequest(creations=(creation,))).results
    assert result.error_code is ErrorCode.none
