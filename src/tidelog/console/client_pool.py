"""Clients for concurrent requests: each request borrows a client of its own.

A client keeps its connections, so the next request that borrows it does not connect again. A client
whose request failed is closed, because its connections may be broken.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.client.client import Client

MOST_IDLE = 4
SILENCE_SECONDS = 2.0
"""How long to wait for a broker that does not answer."""


class ClientPool:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._idle: list[Client] = []
        self._lock = threading.Lock()

    @contextmanager
    def borrow(self) -> Iterator[Client]:
        with self._lock:
            client = self._idle.pop() if self._idle else None
        if client is None:
            client = Client(self.bootstrap, SILENCE_SECONDS)
        try:
            yield client
        except BaseException:
            client.__exit__(None, None, None)
            raise
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(client)
                return
        client.__exit__(None, None, None)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.__exit__(None, None, None)
