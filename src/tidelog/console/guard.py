"""Decides which HTTP requests the console accepts.

A page of another site must not be able to use the console through the user's browser. So a request
must name a host of the console (against DNS rebinding), and a change must come from a page of the
console. On an address that other machines can reach, every request needs the token.
"""

import hmac
from collections.abc import Mapping
from typing import NamedTuple

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "tidelog_console"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class RequestRefusal(NamedTuple):
    status: int
    sentence: str


class Guard:
    def __init__(
        self, hosts: tuple[str, ...], token: str | None = None, *, read_only: bool = False
    ) -> None:
        """`hosts` are the names, without a port, under which browsers may reach the console."""
        self._hosts = hosts
        self._token = token
        self.read_only = read_only

    def refusal(
        self, method: str, headers: Mapping[str, str], cookie: str | None, token: str | None
    ) -> RequestRefusal | None:
        """Why the request is refused; None if it is accepted."""
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if "*" not in self._hosts and name not in self._hosts:
            return RequestRefusal(421, "This console is not known under this host name.")
        if self._token is not None and not self._has_token(headers, cookie, token):
            return RequestRefusal(
                401, "Open the address that `tidelog console` printed: it has a token."
            )
        if method in ("GET", "HEAD"):
            return None
        if self.read_only:
            return RequestRefusal(403, "This console is read-only.")
        origin = headers.get("origin", "")
        if origin.partition("://")[2] != host:
            return RequestRefusal(403, "A change must come from a page of this console.")
        if headers.get("content-type", "").partition(";")[0] != "application/json":
            return RequestRefusal(415, "A change must be sent as JSON.")
        return None

    def is_token(self, given: str | None) -> bool:
        return (
            self._token is not None
            and given is not None
            and hmac.compare_digest(given.encode(), self._token.encode())
        )

    def _has_token(self, headers: Mapping[str, str], cookie: str | None, token: str | None) -> bool:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return any(self.is_token(one) for one in (cookie, token, bearer))
