"""The client's side of SCRAM, written from RFC 5802 for tests."""

import hashlib
import hmac
from base64 import b64decode, b64encode


class ScramClient:
    def __init__(self, user: str, password: str, hash_name: str, nonce: str = "rOprNGfwEbeRWgbN"):
        self._password = password
        self._hash = hash_name
        self._bare = f"n={user},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        text = server_first.decode()
        fields = dict(part.split("=", 1) for part in text.split(","))
        salt, iterations = b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        unsigned = f"c=biws,r={fields['r']}"
        transcript = f"{self._bare},{text},{unsigned}".encode()
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), transcript)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), transcript)
        return f"{unsigned},p={b64encode(proof).decode()}".encode()

    def trusts(self, server_final: bytes) -> bool:
        return server_final == b"v=" + b64encode(self._server_signature)

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)
