"""The HTTP server for metrics: it serves few scrapes at once, and closes silent connections."""

from collections.abc import Iterator
from threading import Thread, active_count
from typing import Any
from urllib.request import urlopen

import pytest
from tests.unit.runtime.echo import Client

from tidelog.runtime.metrics import scrapes
from tidelog.runtime.metrics.scrapes import SCRAPES, server_at


def application(_: Any, start: Any) -> list[bytes]:
    start("200 OK", [])
    return [b"measured"]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(scrapes._Handler, "timeout", 0.2)
    server = server_at("127.0.0.1", 0, application)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[:2]
    server.shutdown()
    thread.join()
    server.server_close()


def scrape(address: tuple[str, int]) -> bytes:
    with urlopen(f"http://{address[0]}:{address[1]}/metrics") as answer:
        found: bytes = answer.read()
    return found


def test_a_scrape_is_answered(address: tuple[str, int]) -> None:
    assert scrape(address) == b"measured"


def test_f65_silent_connections_take_few_threads_and_are_closed(address: tuple[str, int]) -> None:
    before = active_count()
    silent = [Client().connect(address) for _ in range(100)]
    assert all(client.is_closed_by_peer() for client in silent[SCRAPES:])
    assert active_count() - before <= SCRAPES
    assert all(client.is_closed_by_peer() for client in silent[:SCRAPES])
    for client in silent:
        client.sock.close()
    assert scrape(address) == b"measured"
