"""Loads key stores and trust stores into a context of OpenSSL: PEM and PKCS#12.

No private key is written to a disk: OpenSSL reads keys from files only, so a key that is not in a
PEM file reaches it by an anonymous file in memory.
"""

import os
import ssl
from pathlib import Path

from tidelog.config.tls_settings import Store

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_DER_SEQUENCE = b"\x30"
_PEM = b"-----BEGIN"


class BadStore(Exception):
    """A store cannot be used. The message is one sentence that begins with a configuration key."""

    def __init__(self, store: Store, problem: str) -> None:
        super().__init__(f"{store.key}: {problem}")


def load_keys(context: ssl.SSLContext, store: Store) -> None:
    """Load the private key and the certificates of this node."""
    content = _content(store)
    password = store.key_password
    if not _is_pem(store, content):
        content, password = _keys_of_pkcs12(store, content), None
    number = os.memfd_create("tidelog-key", os.MFD_CLOEXEC)
    try:
        os.write(number, content)
        # An empty password is refused where one is needed. Without one, OpenSSL would ask a person.
        context.load_cert_chain(f"/proc/self/fd/{number}", password=password or "")
    except ssl.SSLError as error:
        raise BadStore(store, _why_unusable(error, content)) from None
    except ValueError:
        raise BadStore(store, "the password of the key is too long") from None
    finally:
        os.close(number)


def load_trusted(context: ssl.SSLContext, store: Store) -> None:
    """Load the certificates that this node trusts."""
    content = _content(store)
    if not _is_pem(store, content):
        content = _certificates_of_pkcs12(store, content)
    try:
        context.load_verify_locations(cadata=content.decode("ascii", "replace"))
    except ssl.SSLError:
        raise BadStore(store, "it has no certificate in PEM that can be read") from None


def _why_unusable(error: ssl.SSLError, content: bytes) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the first certificate"
    if b"ENCRYPTED" in content:
        return "the private key cannot be decrypted with ssl.key.password"
    return "it needs a private key and its certificates, in PEM"


def _content(store: Store) -> bytes:
    if store.text is not None:
        return store.text.replace("\\n", "\n").encode()
    assert store.location is not None
    try:
        return Path(store.location).read_bytes()
    except OSError as error:
        raise BadStore(store, f"{store.location}: {error.strerror}") from None


def _is_pem(store: Store, content: bytes) -> bool:
    """Whether the content is PEM, not PKCS#12; raises BadStore if it is not of the given type."""
    if content.startswith((_JKS, _JCEKS)):
        raise BadStore(
            store,
            f"{store.location} is a Java key store (JKS), which Tidelog does not read; convert it "
            f"with: keytool -importkeystore -srckeystore {store.location} "
            f"-destkeystore {store.location}.p12 -deststoretype PKCS12",
        )
    if store.type == "PEM":
        if _PEM not in content:
            raise BadStore(store, "it is not PEM")
        return True
    if _PEM in content:
        raise BadStore(store, f"it is PEM; set {store.key.rpartition('.')[0]}.type=PEM")
    if not content.startswith(_DER_SEQUENCE):
        raise BadStore(store, "it is not PKCS#12")
    return False


def _keys_of_pkcs12(store: Store, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization

    key, certificate, others = _parsed(store, content)
    if key is None or certificate is None:
        raise BadStore(store, "it needs a private key and its certificate")
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = [one.public_bytes(serialization.Encoding.PEM) for one in (certificate, *others)]
    return b"".join((private, *chain))


def _certificates_of_pkcs12(store: Store, content: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization

    _, certificate, others = _parsed(store, content)
    trusted = others if certificate is None else [certificate, *others]
    if not trusted:
        raise BadStore(store, "it has no certificates")
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in trusted)


def _parsed(store: Store, content: bytes):  # type: ignore[no-untyped-def]
    # Only nodes with a PKCS#12 store pay for this import.
    from cryptography.hazmat.primitives.serialization import pkcs12

    password = store.password.encode() if store.password else None
    try:
        return pkcs12.load_key_and_certificates(content, password)
    except ValueError:
        raise BadStore(store, "the password is wrong, or the file is damaged") from None
