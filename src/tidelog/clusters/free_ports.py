"""Ports for clusters on this machine: free when they are given, and given to nobody else meanwhile.

That nobody listens on a port does not make it safe: before its node starts, or while that is down,
another cluster may find it free, too. So ports come in blocks, and whoever asks here claims one by
a UDP socket on its first port: the system gives that to one process, and takes it back at its end.
All are below the ports that the system takes for outgoing connections.
"""

import random
import socket
import time

HOST = "127.0.0.1"
BLOCK = 32
LOWEST, HIGHEST = 10_240, 15_200
"""Of the brokers; the ports beside theirs, 5,000 and 10,000 above, are no other block's either."""
GRACE_SECONDS = 2.0
"""The system may take a process's ports back a moment after its locks."""
_PAUSE_SECONDS = 0.02


class PortBlock:
    """So many ports from `first` on, until it is released."""

    def __init__(self, width: int = BLOCK) -> None:
        if width < 1:
            raise ValueError(f"a block of {width} ports is none")
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


def is_free(port: int) -> bool:
    """Whether a listener could have it now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def becomes_free(port: int) -> bool:
    """Whether a listener can have it now or in a moment."""
    deadline = time.monotonic() + GRACE_SECONDS
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
