"""Runs the console's HTTP server."""

import errno
import logging
import secrets
import socket
from typing import NamedTuple

import uvicorn

from tidelog.console.app import Console, LocalNodes
from tidelog.console.guard import LOOPBACK, Guard
from tidelog.model.user_error import UserError

DEFAULT_PORT = 8080
TRIES = 20
"""If the chosen port is in use, the next ports are tried, this number in all."""


class ConsoleOptions(NamedTuple):
    bootstrap: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    read_only: bool = False
    token: str | None = None


def listen(host: str, port: int, tries: int = TRIES) -> socket.socket:
    """A socket on the port, or on the next free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + tries, 65_536)):
        made = socket.socket(family)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen()
        except OSError as error:
            made.close()
            if number + 1 == port + tries or error.errno != errno.EADDRINUSE:
                raise UserError(f"{host}:{number}: {error.strerror}.") from None
        else:
            return made
    raise UserError(f"{host}: the ports from {port} on are in use.")


def is_loopback(host: str) -> bool:
    return host in ("127.0.0.1", "localhost", "::1")


def token_for(options: ConsoleOptions) -> str | None:
    """The token that requests need; None on an address that only this machine can reach."""
    if options.token is not None or is_loopback(options.host):
        return options.token
    return secrets.token_urlsafe(24)


def address_of(sock: socket.socket, host: str, token: str | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    query = "" if token is None else f"/?token={token}"
    return f"http://{shown}:{sock.getsockname()[1]}{query}"


def serve(
    options: ConsoleOptions, sock: socket.socket, token: str | None, local: LocalNodes | None
) -> None:
    """Serve until SIGINT or SIGTERM."""
    hosts = LOOPBACK if is_loopback(options.host) else ("*",)
    console = Console(options.bootstrap, Guard(hosts, token, read_only=options.read_only), local)
    config = uvicorn.Config(
        console.app(),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.WARNING)
    # Live pages that are open when the console ends are no error.
    logger.addFilter(lambda record: not record.getMessage().startswith("Cancel "))
    uvicorn.Server(config).run(sockets=[sock])
