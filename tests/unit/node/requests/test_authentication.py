"""How a connection gets its principal: by bare SASL messages, and by a certificate."""

from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.sasl_handshake.v0.request import SaslHandshakeRequest
from tests.unit.node.bench import Bench
from tests.unit.runtime.transport.certificates import properties

from tidelog.model.errors import ErrorCode
from tidelog.model.events import Connected
from tidelog.model.ids import ConnId

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SASL = {
    "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "sasl_mechanism_inter_broker_protocol": "PLAIN",
    "sasl_jaas_config": f'{MODULE} required username="a" password="b" user_alice="secret";',
}
LIST_GROUPS = ListGroupsRequest(states_filter=(), types_filter=())


def begin(bench: Bench) -> ConnId:
    """A connection that has chosen PLAIN by version 0 of SaslHandshake."""
    conn = bench.connect()
    answer = bench.ask(SaslHandshakeRequest(mechanism="PLAIN"), conn, 0)
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.none, ("PLAIN",))
    return conn


def test_after_version_0_of_the_handshake_messages_have_no_header() -> None:
    bench = Bench(**SASL)
    conn = begin(bench)
    bench.send_frame(conn, b"\0alice\0secret")
    assert list(bench.sent[conn]) == [b""]
    bench.sent[conn].clear()
    assert bench.ask(LIST_GROUPS, conn).error_code is ErrorCode.none
    assert conn not in bench.closed


def test_a_wrong_password_in_a_bare_message_gets_no_answer_and_closes() -> None:
    bench = Bench(**SASL)
    conn = begin(bench)
    bench.send_frame(conn, b"\0alice\0guess")
    bench.send_frame(conn, b"\0alice\0secret")
    bench.send(conn, LIST_GROUPS)
    assert not bench.sent[conn]
    bench.pass_time(1_000)
    assert bench.closed[conn] == "failed to authenticate"


def test_a_request_in_place_of_a_bare_message_does_not_get_in() -> None:
    bench = Bench(**SASL)
    conn = begin(bench)
    bench.send(conn, LIST_GROUPS)
    assert not bench.sent[conn]
    bench.pass_time(1_000)
    assert bench.closed[conn] == "failed to authenticate"


def encrypted(rules: str) -> Bench:
    keys = properties(ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    given = {f"listener.name.plaintext.{key}": value for key, value in keys.items()}
    protocols = "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"
    return Bench(
        listener_security_protocol_map=protocols,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ALICE;User:ANONYMOUS",
        **{key.replace(".", "_"): value for key, value in given.items()},
    )


def connect(bench: Bench, subject: str) -> ConnId:
    conn = 100
    bench.tell(Connected(conn, "10.0.0.1:40000", "PLAINTEXT", subject))
    return conn


def test_the_name_in_a_certificate_is_the_principal_by_the_rules_of_its_listener() -> None:
    bench = encrypted("RULE:^CN=(.*?),O=x$/$1/U,DEFAULT")
    alice = connect(bench, "CN=alice,O=x")
    assert bench.ask(LIST_GROUPS, alice).error_code is ErrorCode.none


def test_a_certificate_to_which_no_rule_applies_closes_the_connection() -> None:
    bench = encrypted("RULE:^CN=(.*?),O=x$/$1/U")
    mallory = connect(bench, "CN=mallory,O=y")
    assert "no rule of ssl.principal.mapping.rules applies" in bench.closed[mallory]
    bench.send(mallory, LIST_GROUPS)
    assert not bench.sent[mallory]
