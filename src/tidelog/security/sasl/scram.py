"""SASL SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): neither side sends a password.

The server stores keys that are derived from a salted password. It learns no password, and a
recorded exchange cannot be replayed, because each side adds a nonce.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from hmac import compare_digest
from hmac import digest as hmac
from typing import NamedTuple

from tidelog.security.sasl.exchange import SaslStep

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
MECHANISMS = {SHA_256: (1, "sha256"), SHA_512: (2, "sha512")}
"""Each mechanism with its number in Kafka's records, and the name of its hash."""
HASHES = dict(MECHANISMS.values())
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384

_CLIENT_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>[^,]*))?,(?P<bare>n=(?P<user>[^,]*),r=(?P<nonce>[!-+\--~]{1,512})"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,]*)*))"
)
_CLIENT_FINAL = re.compile(
    r"(?P<unsigned>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]{1,1024}))"
    r",p=(?P<proof>[A-Za-z0-9+/=]{1,200})"
)
_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[!-+\--~]{1,1024}),s=(?P<salt>[A-Za-z0-9+/=]{1,1024}),i=(?P<iterations>\d{1,9})"
    r"(?:,[A-Za-z]+=[^,]*)*"
)
_LONGEST = 64 * 1024


class ScramKeys(NamedTuple):
    """The credential of a user, as Kafka stores it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


FindKeys = Callable[[str], ScramKeys | None]
"""Returns the credential of a user for one mechanism; None if there is none."""


def keys_of(salted_password: bytes, salt: bytes, iterations: int, hash_name: str) -> ScramKeys:
    """The keys that a server stores for a salted password."""
    client_key = hmac(salted_password, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return ScramKeys(salt, stored_key, hmac(salted_password, b"Server Key", hash_name), iterations)


def salted(password: str, salt: bytes, iterations: int, hash_name: str) -> bytes:
    """The salted password. This takes milliseconds, so a node must run it as a job."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


class ScramServer:
    def __init__(self, mechanism: str, find: FindKeys, nonce: str) -> None:
        self._mechanism = mechanism
        self._hash = MECHANISMS[mechanism][1]
        self._find = find
        self._nonce = nonce
        self._user: str | None = None
        self._keys: ScramKeys | None = None
        self._transcript = ""

    def step(self, message: bytes) -> SaslStep:
        try:
            text = message[:_LONGEST].decode()
        except UnicodeDecodeError:
            return self._failed()
        return self._first(text) if self._user is None else self._final(text)

    def _first(self, text: str) -> SaslStep:
        found = _CLIENT_FIRST.fullmatch(text)
        user = None if found is None else _name(found["user"])
        if found is None or not user or "tokenauth=true" in found["extensions"].split(","):
            return self._failed()
        if found["authzid"] is not None and _name(found["authzid"]) not in ("", user):
            return SaslStep(
                failure="Authentication failed: Client requested an authorization id that is "
                "different from username"
            )
        keys = self._find(user)
        if keys is None:
            return self._failed()
        self._user, self._keys = user, keys
        self._nonce = found["nonce"] + self._nonce
        salt = b64encode(keys.salt).decode()
        first = f"r={self._nonce},s={salt},i={keys.iterations}"
        self._transcript = f"{found['bare']},{first}"
        return SaslStep(answer=first.encode())

    def _final(self, text: str) -> SaslStep:
        keys = self._keys
        assert keys is not None
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None or found["nonce"] != self._nonce:
            return self._failed()
        try:
            proof = b64decode(found["proof"], validate=True)
            binding = b64decode(found["binding"], validate=True)
        except NotBase64:
            return self._failed()
        transcript = f"{self._transcript},{found['unsigned']}".encode()
        signature = hmac(keys.stored_key, transcript, self._hash)
        if not binding.startswith(b"n,") or len(proof) != len(signature):
            return self._failed()
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored = hashlib.new(self._hash, client_key).digest()
        if not compare_digest(stored, keys.stored_key):
            return self._failed()
        answer = b"v=" + b64encode(hmac(keys.server_key, transcript, self._hash))
        return SaslStep(answer=answer, user=self._user)

    def _failed(self) -> SaslStep:
        return SaslStep(
            failure="Authentication failed during authentication due to invalid credentials with "
            f"SASL mechanism {self._mechanism}"
        )


def _name(encoded: str) -> str | None:
    """Decode a name, in which `=2C` is a comma and `=3D` an equals sign; None if it is invalid."""
    decoded = encoded.replace("=2C", ",").replace("=3D", "\0")
    return None if "=" in decoded else decoded.replace("\0", "=")


class BadScramAnswer(ValueError):
    """The server does not know the password, or its answer breaks the protocol."""


class ScramClient:
    """The client's side of one exchange.

    Before it sends a proof, it checks the iterations: too few would let a false server guess the
    password from the proof, and too many would block this node. At the end it checks that the
    server knows the password, too.
    """

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = MECHANISMS[mechanism][1]
        self._password = password
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        found = _SERVER_FIRST.fullmatch(answer[:_LONGEST].decode("utf-8", "replace"))
        if found is None or not found["nonce"].startswith(self._nonce):
            raise BadScramAnswer("its first message is not SCRAM's")
        iterations = int(found["iterations"])
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise BadScramAnswer(
                f"it asks for {iterations} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are "
                "accepted"
            )
        try:
            salt = b64decode(found["salt"], validate=True)
        except NotBase64:
            raise BadScramAnswer("its salt is not base64") from None
        secret = salted(self._password, salt, iterations, self._hash)
        client_key = hmac(secret, b"Client Key", self._hash)
        keys = keys_of(secret, salt, iterations, self._hash)
        unsigned = f"c={b64encode(b'n,,').decode()},r={found['nonce']}"
        transcript = f"{self._bare},{found[0]},{unsigned}".encode()
        signature = hmac(keys.stored_key, transcript, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = hmac(keys.server_key, transcript, self._hash)
        return f"{unsigned},p={b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """Check the server's last message; raise BadScramAnswer if it does not know the keys."""
        if not compare_digest(answer, b"v=" + b64encode(self._signature)):
            raise BadScramAnswer("it does not know the password of this node")
