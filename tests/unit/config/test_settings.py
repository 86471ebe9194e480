"""server.properties: typed values, warnings for unknown keys, errors for invalid values."""

import dataclasses

import pytest
from tests.unit.controller.support import PROPERTIES

from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.settings import BadSetting, BrokerSettings, Listener, VoterAddress

BROKER_ONLY = {
    **PROPERTIES,
    "process.roles": "broker",
    "listeners": "PLAINTEXT://:9092",
    "node.id": "4",
}

BOTH_PLAIN = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}


def read(changes: dict[str, str], base: dict[str, str] | None = None) -> BrokerSettings:
    return BrokerSettings.from_properties({**(base or PROPERTIES), **changes}, "this.host")


def problem(changes: dict[str, str], base: dict[str, str] | None = None) -> str:
    with pytest.raises(BadSetting) as refused:
        read(changes, base)
    return str(refused.value)


# -- Valid settings --------------------------------------------------------------------------------


def test_defaults_are_kafkas() -> None:
    settings = read({})

    assert settings.num_partitions == 1
    assert settings.replica_lag_time_max_ms == 30_000
    assert settings.broker_session_timeout_ms == 9000
    assert settings.socket_request_max_bytes == 104_857_600
    assert settings.offsets_topic_replication_factor == 3
    assert settings.group_max_size == 2**31 - 1
    assert settings.auto_create_topics_enable is True
    assert settings.broker_rack is None
    assert settings.warnings == ()


def test_every_plain_field_is_a_key_with_underscores() -> None:
    structured = {"is_broker", "is_controller", "raw", "warnings", "security_protocols"}
    structured |= {"tls_listeners", "tls_peers"}
    for field in dataclasses.fields(BrokerSettings):
        if field.name not in structured:
            assert field.name.replace("_", ".") in BROKER_KEYS, field.name


def test_roles_addresses_and_directories() -> None:
    settings = read({"log.dirs": "a, b", "advertised.listeners": "PLAINTEXT://example.org:1234"})

    assert settings.node_id == 1
    assert (settings.is_broker, settings.is_controller) == (True, True)
    assert settings.listeners == (
        Listener("PLAINTEXT", "127.0.0.1", 9092),
        Listener("CONTROLLER", "127.0.0.1", 9093),
    )
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "example.org", 1234),)
    assert settings.controller_listener_names == ("CONTROLLER",)
    assert settings.controller_quorum_voters == (VoterAddress(1, "127.0.0.1", 9093),)
    assert settings.log_dirs == ("a", "b")
    assert settings.metadata_log_dir == "a"
    assert settings.inter_broker_listener_name == "PLAINTEXT"


def test_a_listener_without_a_host_is_advertised_under_the_hosts_name() -> None:
    settings = read({}, BROKER_ONLY)

    assert settings.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert settings.advertised_listeners == (Listener("PLAINTEXT", "this.host", 9092),)


def test_an_address_may_be_ipv6() -> None:
    settings = read({"listeners": "PLAINTEXT://[::1]:9092"}, BROKER_ONLY)

    assert settings.listeners == (Listener("PLAINTEXT", "::1", 9092),)


def test_named_listeners() -> None:
    settings = read(
        {
            "listeners": "INSIDE://:9092,OUTSIDE://:9094",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "controller.quorum.voters": "",
            "controller.quorum.bootstrap.servers": "a:9093,b:9093",
        },
        BROKER_ONLY,
    )

    assert settings.inter_broker_listener_name == "INSIDE"
    assert settings.controller_quorum_bootstrap_servers == (("a", 9093), ("b", 9093))


def test_broker_id_is_the_old_name_of_node_id() -> None:
    old = {key: value for key, value in BROKER_ONLY.items() if key != "node.id"}

    assert read({"broker.id": "7"}, old).node_id == 7
    assert problem({"broker.id": "7"}) == "broker.id: it differs from node.id; keep node.id only"


def test_unknown_keys_have_warnings_and_ignored_keys_have_none() -> None:
    settings = read(
        {
            "num.io.threads": "8",
            "ssl.keystore.location": "x",
            "listener.name.plaintext.x": "y",
            "no.such.key": "1",
        }
    )

    assert settings.warnings == ("no.such.key: this key is not known and has no effect",)
    assert settings.raw["num.io.threads"] == "8"


# -- Invalid settings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"num.partitions": "many"},
            "num.partitions: 'many' is not usable: Not a number of type INT",
        ),
        (
            {"num.partitions": "0"},
            "num.partitions: '0' is not usable: Value must be at least 1",
        ),
        (
            {"log.retention.hours": "0"},
            "log.retention.hours: '0' is not usable: Value must be unlimited (-1) or at least 1",
        ),
        (
            {"process.roles": "broker,zookeeper"},
            "process.roles: it must be broker, controller, or broker,controller",
        ),
        ({"listeners": "localhost:9092"}, "listeners: 'localhost:9092' is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://:x"}, "listeners: ':x' is not host:port"),
        ({"listeners": "PLAINTEXT://:99999"}, "listeners: ':99999' is not host:port"),
        (
            {"listeners": "PLAINTEXT://::1:9092"},
            "listeners: write the IPv6 address of '::1:9092' in brackets",
        ),
        (
            {"listeners": "FOO://:1"},
            "listeners: listener FOO is missing in listener.security.protocol.map",
        ),
        (
            {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
            "listeners: the listener name PLAINTEXT is used twice",
        ),
        (
            {"listeners": "PLAINTEXT://:1,CONTROLLER://:1"},
            "listeners: port 1 is used twice",
        ),
        (
            {"listeners": ""},
            "listeners: at least one is needed, such as PLAINTEXT://:9092",
        ),
        (
            {"listeners": "SSL://:1,CONTROLLER://:2"},
            "ssl.keystore.location: it is needed, because SSL is encrypted",
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT"},
            "listener.security.protocol.map: 'PLAINTEXT' is not NAME:PROTOCOL "
            "with one of Kafka's protocols",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners: 0.0.0.0 is not an address that clients can reach; name a host",
        ),
        (
            {"controller.quorum.voters": "2@h:1"},
            "controller.quorum.voters: the controller 1 (node.id) is not among the voters",
        ),
        (
            {"controller.quorum.voters": "h:1"},
            "controller.quorum.voters: 'h:1' is not id@host:port",
        ),
        (
            {"controller.quorum.voters": "1@a:1,1@b:1"},
            "controller.quorum.voters: the voter 1 is listed twice",
        ),
        (
            {"controller.quorum.voters": ""},
            "controller.quorum.voters: set this key or controller.quorum.bootstrap.servers "
            "to the controllers' addresses",
        ),
        (
            {"controller.listener.names": "", **BOTH_PLAIN},
            "controller.listener.names: at least one listener name is needed",
        ),
        (
            {"controller.listener.names": "OTHER", **BOTH_PLAIN},
            "controller.listener.names: a controller must list each of these names in listeners",
        ),
        (
            {"inter.broker.listener.name": "CONTROLLER"},
            "inter.broker.listener.name: it may not be a controller listener",
        ),
        (
            {"inter.broker.listener.name": "NOWHERE"},
            "inter.broker.listener.name: NOWHERE is not among the advertised listeners",
        ),
        (
            {
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            "inter.broker.listener.name: set either this or security.inter.broker.protocol, "
            "not both",
        ),
        (
            {"broker.heartbeat.interval.ms": "10000"},
            "broker.heartbeat.interval.ms: it may not be longer than broker.session.timeout.ms",
        ),
        ({"log.dirs": " , "}, "log.dirs: at least one directory is needed"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_sentence(
    changes: dict[str, str], sentence: str
) -> None:
    assert problem(changes) == sentence


def test_node_id_and_process_roles_are_required() -> None:
    for missing in ("node.id", "process.roles"):
        given = {key: value for key, value in PROPERTIES.items() if key != missing}
        with pytest.raises(BadSetting, match=f"^{missing}: it must be"):
            BrokerSettings.from_properties(given)


def test_a_broker_does_not_listen_on_the_controllers_listener() -> None:
    assert problem({"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, BROKER_ONLY) == (
        "controller.listener.names: a node that is only a broker may not listen on them"
    )
    assert problem({"advertised.listeners": "PLAINTEXT://h:1,SSL://h:2"}, BROKER_ONLY) == (
        "advertised.listeners: each name must also be in listeners"
    )


# -- SASL ------------------------------------------------------------------------------------------

_SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="a" password="top-secret" user_a="top-secret";',
}


def test_a_sasl_listener_and_no_password_in_the_text_of_the_settings() -> None:
    settings = read(_SASL)

    assert settings.security_protocols["PLAINTEXT"] == 2
    assert "top-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"sasl.enabled.mechanisms": "GSSAPI"},
            "sasl.enabled.mechanisms: GSSAPI is not available; use one or more of PLAIN, "
            "SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "GSSAPI"},
            "sasl.mechanism.inter.broker.protocol: GSSAPI is not available between nodes; "
            "use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
            "listener.name.plaintext.scram-sha-256.sasl.jaas.config: the login module for SCRAM is "
            "org.apache.kafka.common.security.scram.ScramLoginModule",
        ),
        (
            {
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
                "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
            },
            "sasl.mechanism.controller.protocol: SCRAM-SHA-512 is not available to controllers, "
            "because its users are known only once the controllers have a quorum; use PLAIN, or "
            "SSL with certificates",
        ),
        (
            {"sasl.jaas.config": "top-secret"},
            "listener.name.plaintext.plain.sasl.jaas.config: it is not a login module, a control "
            "flag and options, ended by a semicolon",
        ),
        (
            {"sasl.jaas.config": 'other.Module required user_a="b";'},
            "listener.name.plaintext.plain.sasl.jaas.config: the login module for PLAIN is "
            "org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        (
            {"super.users": "admin"},
            "super.users: 'admin' is not usable: expected a string in format "
            "principalType:principalName but got admin",
        ),
    ],
)
def test_an_invalid_security_setting_is_reported(changes: dict[str, str], sentence: str) -> None:
    assert problem({**_SASL, **changes}) == sentence
