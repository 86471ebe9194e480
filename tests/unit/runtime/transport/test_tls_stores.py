"""Key stores and trust stores: PEM, PKCS#12, and stores that cannot be used."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.unit.runtime.transport.certificates import (
    LISTENER,
    authority,
    pem_file,
    properties,
    server_certificate,
)

from tidelog.config.tls_settings import tls_settings
from tidelog.runtime.transport.tls_contexts import client_context, server_context
from tidelog.runtime.transport.tls_stores import BadStore


def make(given: dict[str, str]) -> ssl.SSLContext:
    settings = tls_settings(given, LISTENER, is_sasl=False)
    client_context(settings)
    return server_context(settings)


def keytool(*arguments: str) -> None:
    tool = shutil.which("keytool")
    assert tool is not None, "tools/test-needs installs Java"
    subprocess.run([tool, *arguments], check=True, capture_output=True)


def test_pem_with_an_encrypted_key(tmp_path: Path) -> None:
    issued = server_certificate()
    path = tmp_path / "node.pem"
    path.write_text(issued.encrypted_key_pem("word") + issued.certificate_pem)
    given = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(path),
        "ssl.key.password": "word",
    }
    make(given)
    with pytest.raises(BadStore, match=r"cannot be decrypted with ssl\.key\.password"):
        make(given | {"ssl.key.password": "another word"})
    del given["ssl.key.password"]
    with pytest.raises(BadStore, match=r"cannot be decrypted with ssl\.key\.password"):
        make(given)


def test_pkcs12_as_python_and_keytool_write_it(tmp_path: Path) -> None:
    keys, trusted, root = tmp_path / "node.p12", tmp_path / "trusted.p12", tmp_path / "ca.pem"
    keys.write_bytes(server_certificate().pkcs12("secret"))
    root.write_text(authority().certificate_pem)
    store = ("-keystore", str(trusted), "-storetype", "PKCS12", "-storepass", "secret")
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", str(root), *store)
    given = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(keys),
        "ssl.keystore.password": "secret",
        "ssl.truststore.location": str(trusted),  # Java reads PKCS#12 as its default type, too
        "ssl.truststore.password": "secret",
        "ssl.client.auth": "required",
    }
    assert [one["subject"] for one in make(given).get_ca_certs()] == [
        ((("commonName", "test CA"),),)
    ]
    with pytest.raises(BadStore, match="the password is wrong, or the file is damaged"):
        make(given | {"ssl.keystore.password": "guess"})


def test_a_java_key_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "node.jks"
    store = ("-keystore", str(path), "-storetype", "JKS", "-storepass", "secret")
    keytool("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=a", *store)
    with pytest.raises(BadStore) as refused:
        make({"ssl.keystore.location": str(path), "ssl.keystore.password": "secret"})
    assert str(refused.value) == (
        f"ssl.keystore.location: {path} is a Java key store (JKS), which Tidelog does not read; "
        f"convert it with: keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 "
        "-deststoretype PKCS12"
    )


@pytest.mark.parametrize(
    ("content", "store_type", "problem"),
    [
        (b"", "PEM", "it is not PEM"),
        (b"", "PKCS12", "it is not PKCS#12"),
        (b"\x30\x80damaged", "PKCS12", "the password is wrong, or the file is damaged"),
        (b"-----BEGIN", "PKCS12", "it is PEM; set ssl.keystore.type=PEM"),
        (b"-----BEGIN nothing", "PEM", "it needs a private key and its certificates, in PEM"),
    ],
)
def test_a_store_that_cannot_be_used_is_reported_in_one_sentence(
    content: bytes, store_type: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(BadStore) as refused:
        make({"ssl.keystore.type": store_type, "ssl.keystore.location": str(path)})
    assert str(refused.value) == f"ssl.keystore.location: {problem}"


def test_a_missing_file_and_a_key_of_another_certificate_are_reported(tmp_path: Path) -> None:
    given = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "none")}
    with pytest.raises(BadStore, match="No such file or directory"):
        make(given)
    other = authority().issue("another")
    path = pem_file(tmp_path, server_certificate())
    path.write_text(other.key_pem + server_certificate().certificate_pem)
    with pytest.raises(BadStore, match="does not belong to the first certificate"):
        make(given | {"ssl.keystore.location": str(path)})


def test_a_trust_store_without_certificates_is_refused() -> None:
    with pytest.raises(BadStore, match="it has no certificate in PEM"):
        make(properties(ssl_truststore_certificates="-----BEGIN nothing"))
