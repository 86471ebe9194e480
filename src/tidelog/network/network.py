"""The client side of the proxy network: starts its process and sends orders to it."""

import json
import socket
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tidelog.network import sockets
from tidelog.network.conditions import Party
from tidelog.network.proxy_listener import Place

PATIENCE_SECONDS = 60.0
PROGRAM = (sys.executable, "-P", "-m", "tidelog.network")


class NetworkFailed(Exception):
    """The network could not be started, or has ended."""


class Network:
    """A process with a proxy for each of these listeners.

    The constructor does not wait for the process. The first order waits until the process runs.
    """

    def __init__(self, places: Iterable[Place]) -> None:
        if not sockets.is_supported():
            raise NetworkFailed("a network with faults needs Linux: it reads /proc/net/tcp.")
        places = list(places)
        self._listeners = list(dict.fromkeys(place.listener for place in places))
        ours, theirs = socket.socketpair()
        ours.settimeout(PATIENCE_SECONDS)
        self._orders = ours
        with theirs:
            self._process = subprocess.Popen(
                [*PROGRAM, str(theirs.fileno()), json.dumps(places)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )

    def close(self) -> None:
        self._orders.close()
        self._process.wait(PATIENCE_SECONDS)

    def know(self, pids: Mapping[int, int]) -> None:
        """Set the process ids of the nodes, so that the network finds the owner of a connection."""
        self._order(pids=dict(pids))

    def look(self) -> None:
        """Check for listening nodes now; the network also checks every few milliseconds."""
        self._order()

    def cut(
        self,
        speakers: Collection[Party],
        hearers: Collection[Party],
        listener: str | None = None,
    ) -> None:
        """Hold all bytes that `speakers` send to `hearers`, on one listener or on all listeners."""
        listeners = self._listeners if listener is None else [listener]
        self._order(cut=(list(speakers), list(hearers), listeners))

    def slow(self, party: Party, *, latency_seconds: float, bytes_per_second: float | None) -> None:
        self._order(slow=(party, latency_seconds, bytes_per_second))

    def heal(self) -> None:
        """Remove all cuts and delays, and deliver the held bytes."""
        self._order(heal=True)

    def _order(self, **order: Any) -> None:
        try:
            self._orders.sendall(json.dumps(order).encode() + b"\n")
            answer = self._orders.recv(1)
        except OSError:
            answer = b""
        if not answer:
            raise NetworkFailed("the network process has ended.")
