"""The TLS settings of a listener, with Kafka's keys."""

import pytest

from tidelog.config.addresses import BadSetting
from tidelog.config.tls_settings import TLS_1_3_SUITES, TlsSettings, tls_settings

INLINE = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": "secret key",
    "ssl.keystore.certificate.chain": "chain",
}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "trusted"}


def read(given: dict[str, str], *, is_sasl: bool = False) -> TlsSettings:
    return tls_settings(given, "CLIENTS", is_sasl=is_sasl)


def test_the_defaults_are_kafkas() -> None:
    settings = read({})
    assert (settings.keystore, settings.truststore) == (None, None)
    assert (settings.client_auth, settings.checks_host_name) == ("none", True)
    assert (settings.versions, settings.ciphers) == (("TLSv1.2", "TLSv1.3"), "")


def test_a_key_of_the_listener_goes_before_the_key_of_all() -> None:
    settings = read(
        {
            "ssl.keystore.location": "all.p12",
            "listener.name.clients.ssl.keystore.location": "clients.p12",
            "listener.name.brokers.ssl.keystore.location": "brokers.p12",
        }
    )
    assert settings.keystore is not None
    assert settings.keystore.location == "clients.p12"


def test_a_private_key_is_never_shown() -> None:
    given = INLINE | TRUST | {"ssl.key.password": "secret word"}
    assert "secret" not in repr(read(given))


def test_a_sasl_listener_asks_for_certificates_by_its_own_key_only() -> None:
    given = TRUST | {"ssl.client.auth": "required"}
    assert read(given, is_sasl=True).client_auth == "none"
    own = given | {"listener.name.clients.ssl.client.auth": "requested"}
    assert read(own, is_sasl=True).client_auth == "requested"


@pytest.mark.parametrize(
    ("suites", "ciphers", "versions"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", ("TLSv1.2",)),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256", ("TLSv1.2",)),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", ("TLSv1.2",)),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            ("TLSv1.2",),
        ),
        (",".join(TLS_1_3_SUITES), "", ("TLSv1.3",)),
    ],
)
def test_suites_have_the_names_of_java(
    suites: str, ciphers: str, versions: tuple[str, ...]
) -> None:
    settings = read({"ssl.cipher.suites": suites})
    assert (settings.ciphers, settings.versions) == (ciphers, versions)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth: String must be one of: required, "),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols: String must be one of: "),
        ({"ssl.keystore.type": "DKS"}, "ssl.keystore.type: String must be one of: JKS, "),
        ({"ssl.client.auth": "required"}, "ssl.truststore.location: it is needed, because "),
        ({"ssl.keystore.key": "key"}, "ssl.keystore.key: set it and ssl.keystore.certificate.ch"),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.type: set it to PEM, because "),
        (INLINE | {"ssl.keystore.location": "f"}, "ssl.keystore.location: remove it, because "),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "f",
                "ssl.keystore.password": "p",
            },
            "ssl.keystore.password: a PEM key store has none",
        ),
        ({"ssl.cipher.suites": "TLS_NULL"}, "ssl.cipher.suites: TLS_NULL is not available"),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"},
            "ssl.cipher.suites: list all suites of TLS 1.3",
        ),
        (
            {
                "ssl.cipher.suites": "TLS_RSA_WITH_AES_128_CBC_SHA",
                "ssl.enabled.protocols": "TLSv1.3",
            },
            "ssl.cipher.suites: no suite fits",
        ),
        (
            {"ssl.principal.mapping.rules": "RULE:x"},
            "ssl.principal.mapping.rules: 'RULE:x' is not a rule",
        ),
    ],
)
def test_an_invalid_setting_is_reported_in_one_sentence(
    given: dict[str, str], message: str
) -> None:
    with pytest.raises(BadSetting) as refused:
        read(given)
    assert str(refused.value).startswith(message)
