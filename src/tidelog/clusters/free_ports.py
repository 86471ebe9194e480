"""Finds free ports for clusters on this machine, and reserves them.

A port without a listener may belong to a node that is down or has not started yet. Clusters
therefore reserve blocks of ports. To reserve a block, a cluster binds a UDP socket to the first
port of the block. Only one process at a time can bind the port, and the system frees the port when
the process ends. All blocks are below the ports that the system uses for outgoing connections.
"""

import random
import socket
import time

HOST = "127.0.0.1"
BLOCK = 32
LOWEST, HIGHEST = 10_240, 15_200
"""The range of broker ports. A block also has the ports 5,000 and 10,000 above its broker ports."""
GRACE_SECONDS = 2.0
"""How long to wait until the system frees the port of a process that has ended."""
_PAUSE_SECONDS = 0.02


class PortBlock:
    """A reservation of `width` ports from `first` on, until `release`."""

    def __init__(self, width: int = BLOCK) -> None:
        if width < 1:
            raise ValueError(f"a block has at least one port, not {width}")
        self._claims: list[socket.socket] = []
        while not self._claims:
            self.first = random.randrange(LOWEST, HIGHEST - width, BLOCK)
            self._claim(range(self.first, self.first + width, BLOCK))

    def _claim(self, firsts: range) -> None:
        for port in firsts:
            claim = socket.socket(type=socket.SOCK_DGRAM)
            self._claims.append(claim)
            try:
                claim.bind((HOST, port))
            except OSError:
                self.release()
                return

    def release(self) -> None:
        while self._claims:
            self._claims.pop().close()


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a listener on this address of the machine could use the port now."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError:
        return False
    return True


def is_own_address(host: str) -> bool:
    """Whether this machine can listen on the address at all."""
    return is_free(0, host)


def becomes_free(port: int, host: str = HOST) -> bool:
    """Whether a listener can use the port within `GRACE_SECONDS`."""
    deadline = time.monotonic() + GRACE_SECONDS
    while not is_free(port, host):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
