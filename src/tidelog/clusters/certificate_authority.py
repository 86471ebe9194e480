"""A certificate authority for local clusters: its own certificate, and those that it signs.

It serves `tidelog up --secure` and tests. Its private key is on the disk of one machine, so it must
not be trusted elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return _pem(self.certificate)

    @property
    def key_pem(self) -> str:
        return self._key_pem(serialization.NoEncryption())

    def encrypted_key_pem(self, password: str) -> str:
        return self._key_pem(serialization.BestAvailableEncryption(password.encode()))

    def pkcs12(self, password: str) -> bytes:
        """The key and the certificates as PKCS#12."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"tidelog", self.key, self.certificate, [self.issuer], encryption
        )

    def _key_pem(self, encryption: serialization.KeySerializationEncryption) -> str:
        private_format = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(
            serialization.Encoding.PEM, private_format, encryption
        ).decode()


class CertificateAuthority:
    def __init__(self, name: str = "Tidelog local CA") -> None:
        self._key = _new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_identifier(self._key), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate_pem(self) -> str:
        return _pem(self.certificate)

    def issue(
        self, name: str, hosts: Iterable[str] = (), valid_for: timedelta = VALID_FOR
    ) -> Issued:
        """A certificate of a server or a client; it has expired if `valid_for` is negative."""
        key = _new_key()
        end = datetime.now(UTC) + valid_for
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(end, datetime.now(UTC)) - _CLOCK_SKEW)
            .not_valid_after(end)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        names = [_general_name(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(builder.sign(self._key, hashes.SHA256()), key, self.certificate)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _identifier(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
