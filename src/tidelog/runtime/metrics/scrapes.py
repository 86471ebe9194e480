"""The HTTP server for metrics, built so that its clients cannot block the node (F65).

The server has few threads and drops clients that send nothing. This module is imported only if
metrics are served, because the modules that it needs take longer to load than the rest of a node.
"""

import socket
import time
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

SCRAPES = 8
"""The maximum number of concurrent scrapes."""
PATIENCE_SECONDS = 5.0
REST_SECONDS = 0.1


def server_at(host: str, port: int, application: Any) -> WSGIServer:
    """Create a listening server; an empty host means every interface."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = type("_Server", (_Server,), {"address_family": family})
    return make_server(host or "0.0.0.0", port, application, kind, _Handler)


class _Server(ThreadingMixIn, WSGIServer):
    """Serves each scrape in a thread, up to a limit; further connections are closed (F65)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._slots = BoundedSemaphore(SCRAPES)
        super().__init__(*arguments, **options)

    def get_request(self) -> Any:
        try:
            return super().get_request()
        except OSError:
            time.sleep(REST_SECONDS)  # out of descriptors: an immediate retry would fail as well
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is available
            self._slots.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing, because the scraper sees the failure."""


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_SECONDS

    def log_message(self, *_: Any) -> None:
        """Log nothing for a scrape."""
