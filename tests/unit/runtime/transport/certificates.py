"""Certificates for tests of TLS: an authority, and the settings of listeners that trust it."""

from datetime import timedelta
from functools import cache
from pathlib import Path

from tidelog.clusters.certificate_authority import CertificateAuthority, Issued
from tidelog.config.tls_settings import TlsSettings, tls_settings

LISTENER = "PLAINTEXT"
"""The name of the listener of the echo node."""
HOSTS = ("localhost", "127.0.0.1")
EXPIRED = timedelta(days=-1)


@cache
def authority(name: str = "test CA") -> CertificateAuthority:
    return CertificateAuthority(name)


@cache
def server_certificate() -> Issued:
    return authority().issue("broker", HOSTS)


def properties(issued: Issued | None = None, **changes: str) -> dict[str, str]:
    """The keys of a listener with certificates in the configuration; `ssl_client_auth=...`."""
    issued = issued or server_certificate()
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem,
        "ssl.keystore.certificate.chain": issued.certificate_pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate_pem,
    }
    return keys | {name.replace("_", "."): value for name, value in changes.items()}


def settings(issued: Issued | None = None, **changes: str) -> TlsSettings:
    return tls_settings(properties(issued, **changes), LISTENER, is_sasl=False)


def pem_file(directory: Path, issued: Issued, name: str = "node.pem") -> Path:
    """Write a key store in PEM."""
    path = directory / name
    path.write_text(issued.key_pem + issued.certificate_pem)
    return path
