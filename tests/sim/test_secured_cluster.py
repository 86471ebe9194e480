"""A cluster that authenticates every connection and checks every request."""

from typing import Any

from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
from kio.schema.describe_user_scram_credentials.v0.request import (
    DescribeUserScramCredentialsRequest,
)
from kio.schema.list_groups.v5.request import ListGroupsRequest
from tests.sim.messages import batch, create_topic, produce_to
from tests.sim.secured_cluster import allow, begin, client, log_in, secured, step
from tests.sim.talk import Talk, await_true
from tests.unit.security.sasl.scram_client import ScramClient

from tidelog.model.errors import ErrorCode
from tidelog.security.sasl.scram import salted
from tidelog.sim.machines.cluster import SimCluster

DENIED = ErrorCode.topic_authorization_failed
FAILED = ErrorCode.sasl_authentication_failed
CREATE, WRITE, TOPIC = 5, 4, 2


def follower(cluster: SimCluster) -> int:
    """A node that forwards requests, because it is not the active controller."""
    (leader,) = [id for id, host in cluster.hosts.items() if host.node.is_active_controller]
    return next(id for id in cluster.hosts if id != leader)


def test_nodes_log_in_to_each_other_and_replicate(seed: int) -> None:
    cluster = secured(seed)
    admin = client(cluster, 1, "admin")
    assert admin.ask(create_topic("orders", 3, 3)).topics[0].error_code is ErrorCode.none


def test_before_it_has_authenticated_a_client_may_do_nothing(seed: int) -> None:
    cluster = secured(seed)
    talk = Talk(cluster, 1)
    assert talk.ask(ListGroupsRequest(states_filter=(), types_filter=())) is None
    assert talk.is_lost

    asking = Talk(cluster, 1)
    versions = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    assert asking.ask(versions).error_code is ErrorCode.none


def test_wrong_passwords_are_refused_and_the_connection_is_closed(seed: int) -> None:
    cluster = secured(seed)
    for user, password in (("alice", "guess"), ("mallory", "x")):
        talk = Talk(cluster, 1)
        refused = log_in(talk, user, password)
        assert refused.error_code is FAILED
        assert refused.error_message == "Authentication failed: Invalid username or password"
        await_true(cluster, lambda talk=talk: talk.is_lost)


def test_an_unknown_mechanism_is_refused_with_the_known_ones(seed: int) -> None:
    cluster = secured(seed)
    assert begin(Talk(cluster, 1), "GSSAPI") is ErrorCode.unsupported_sasl_mechanism
    assert step(Talk(cluster, 1), b"\0alice\0alice-secret").error_code is (
        ErrorCode.illegal_sasl_state
    )


def test_f86_a_forwarded_request_has_the_clients_rights(seed: int) -> None:
    cluster = secured(seed)
    alice = client(cluster, follower(cluster), "alice")
    assert alice.ask(create_topic("orders", 1, 3)).topics[0].error_code is DENIED
    assert "orders" not in cluster.hosts[1].node.image.topics

    allow(cluster, "alice", CREATE, TOPIC, "orders")
    here = cluster.hosts[follower(cluster)].node
    await_true(cluster, lambda: bool(here.image.acls))
    created = alice.ask(create_topic("orders", 1, 3)).topics[0]
    assert created.error_code is ErrorCode.none
    assert created.topic_config_error_code == DENIED  # alice may not describe configurations
    bob = client(cluster, follower(cluster), "bob")
    assert bob.ask(create_topic("payments", 1, 3)).topics[0].error_code is DENIED


def set_password(cluster: SimCluster, user: str, password: str) -> None:
    salt = b"0123456789abcdef"
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=1,
        iterations=4096,
        salt=salt,
        salted_password=salted(password, salt, 4096, "sha256"),
    )
    asked = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    [result] = client(cluster, follower(cluster), "admin").ask(asked).results
    assert result.error_code is ErrorCode.none
    for host in cluster.hosts.values():
        await_true(cluster, lambda host=host: (user, 1) in host.node.image.scram)


def scram(cluster: SimCluster, node: int, user: str, password: str) -> Any:
    talk, asked = Talk(cluster, node), ScramClient(user, password, "sha256")
    assert begin(talk, "SCRAM-SHA-256") is ErrorCode.none
    first = step(talk, asked.first())
    if first.error_code is not ErrorCode.none:
        return first.error_code
    last = step(talk, asked.final(first.auth_bytes))
    assert last.error_code is not ErrorCode.none or asked.trusts(last.auth_bytes)
    return last.error_code


def test_a_user_with_a_scram_credential_gets_in_on_every_node(seed: int) -> None:
    cluster = secured(seed)
    assert scram(cluster, 1, "carol", "secret") is FAILED
    set_password(cluster, "carol", "secret")
    assert {scram(cluster, node, "carol", "secret") for node in (1, 2, 3)} == {ErrorCode.none}
    assert scram(cluster, 1, "carol", "guess") is FAILED

    described = client(cluster, 2, "admin").ask(DescribeUserScramCredentialsRequest(users=None))
    [carol] = described.results
    assert (carol.user, carol.error_code) == ("carol", ErrorCode.none)
    assert [(one.mechanism, one.iterations) for one in carol.credential_infos] == [(1, 4096)]


def test_f87_a_deleted_credential_is_of_no_use_on_any_node_also_after_a_restart(seed: int) -> None:
    cluster = secured(seed)
    set_password(cluster, "carol", "secret")
    down = follower(cluster)
    cluster.hosts[down].kill()
    asked = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="carol", mechanism=1),), upsertions=()
    )
    up = next(id for id in cluster.hosts if id != down)
    [result] = client(cluster, up, "admin").ask(asked).results
    assert result.error_code is ErrorCode.none
    cluster.start(down)
    await_true(cluster, lambda: cluster.is_ready)
    for node, host in cluster.hosts.items():
        await_true(cluster, lambda host=host: not host.node.image.scram)
        assert scram(cluster, node, "carol", "secret") is FAILED


def test_f87_a_revoked_permission_ends_on_an_open_connection(seed: int) -> None:
    cluster = secured(seed)
    admin = client(cluster, 1, "admin")
    assert admin.ask(create_topic("orders", 1, 3)).topics[0].error_code is ErrorCode.none
    allow(cluster, "alice", WRITE, TOPIC, "orders")
    leader = cluster.hosts[1].node.image.topics["orders"].partitions[0].leader
    alice = client(cluster, leader, "alice")
    await_true(cluster, lambda: bool(cluster.hosts[leader].node.image.acls))
    assert _produced(alice) is ErrorCode.none

    _delete_acls(admin)
    await_true(cluster, lambda: not cluster.hosts[leader].node.image.acls)
    assert _produced(alice) is DENIED


def _produced(talk: Talk) -> ErrorCode:
    answer = talk.ask(produce_to("orders", batch(b"hello")), 12)
    [(_, [partition])] = answer.topics
    error: ErrorCode = partition.error
    return error


def _delete_acls(admin: Talk) -> None:
    everything = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    [result] = admin.ask(DeleteAclsRequest(filters=(everything,))).filter_results
    assert len(result.matching_acls) == 1


def test_an_authentication_expires_and_can_be_repeated(seed: int) -> None:
    cluster = secured(seed, connections_max_reauth_ms="5000")
    alice = Talk(cluster, 1)
    assert log_in(alice, "alice", "alice-secret").session_lifetime.total_seconds() == 5
    groups = ListGroupsRequest(states_filter=(), types_filter=())
    assert alice.ask(groups).error_code is ErrorCode.none
    cluster.world.run(4_000)
    assert log_in(alice, "alice", "alice-secret").error_code is ErrorCode.none
    cluster.world.run(4_000)
    assert alice.ask(groups).error_code is ErrorCode.none
    cluster.world.run(2_000)
    assert alice.ask(groups) is None
    assert alice.is_lost


def test_a_connection_cannot_become_another_user(seed: int) -> None:
    cluster = secured(seed, connections_max_reauth_ms="5000")
    alice = client(cluster, 1, "alice")
    assert log_in(alice, "bob", "bob-secret").error_code is FAILED
    await_true(cluster, lambda: alice.is_lost)


SCRAM_LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="admin" password="between-nodes";'
)


def test_brokers_log_in_to_each_other_with_scram(seed: int) -> None:
    """The credential is made while the cluster runs, because controllers use PLAIN."""
    changes = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
    }
    cluster = secured(seed, **changes)
    set_password(cluster, "admin", "between-nodes")
    admin = client(cluster, 1, "admin")
    assert admin.ask(create_topic("orders", 1, 3)).topics[0].error_code is ErrorCode.none
    partition = cluster.hosts[1].node.image.topics["orders"].partitions[0]
    assert _produced(client(cluster, partition.leader, "admin")) is ErrorCode.none
    await_true(
        cluster,
        lambda: len(cluster.hosts[1].node.image.topics["orders"].partitions[0].isr) == 3,
    )


def test_brokers_with_a_wrong_scram_password_replicate_nothing(seed: int) -> None:
    changes = {
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "replica.lag.time.max.ms": "5000",
    }
    cluster = secured(seed, **changes)
    set_password(cluster, "admin", "another password")
    admin = client(cluster, 1, "admin")
    assert admin.ask(create_topic("orders", 1, 3)).topics[0].error_code is ErrorCode.none
    await_true(
        cluster,
        lambda: len(cluster.hosts[1].node.image.topics["orders"].partitions[0].isr) == 1,
    )
