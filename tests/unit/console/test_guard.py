"""The console refuses requests of other sites, of other hosts, and without the token."""

import pytest

from tidelog.console.guard import LOOPBACK, Guard

HOST = "127.0.0.1:8080"
JSON = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json"}


def status(
    guard: Guard, method: str, headers: dict[str, str], cookie: str = "", token: str = ""
) -> int:
    refusal = guard.refusal(method, headers, cookie or None, token or None)
    return 200 if refusal is None else refusal.status


def test_a_page_of_the_console_may_look_and_change() -> None:
    guard = Guard(LOOPBACK)

    assert status(guard, "GET", {"host": HOST}) == 200
    assert status(guard, "GET", {"host": "localhost:8080"}) == 200
    assert status(guard, "GET", {"host": "[::1]:8080"}) == 200
    assert status(guard, "POST", JSON) == 200


@pytest.mark.parametrize("host", ["evil.example:8080", "evil.example", "", "127.0.0.1.evil:8080"])
def test_a_name_that_another_site_gave_to_this_address_is_refused(host: str) -> None:
    assert status(Guard(LOOPBACK), "GET", {"host": host}) == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1:9999", "127.0.0.1:8080"]
)
def test_a_change_from_another_page_is_refused(origin: str) -> None:
    assert status(Guard(LOOPBACK), "POST", {**JSON, "origin": origin}) == 403


def test_a_form_of_another_site_cannot_send_json() -> None:
    plain = {**JSON, "content-type": "text/plain"}

    assert status(Guard(LOOPBACK), "POST", plain) == 415


def test_a_read_only_console_refuses_every_change() -> None:
    guard = Guard(LOOPBACK, read_only=True)

    assert status(guard, "POST", JSON) == 403
    assert status(guard, "DELETE", JSON) == 403
    assert status(guard, "GET", {"host": HOST}) == 200


def test_with_a_token_every_request_needs_it() -> None:
    guard = Guard(("*",), "secret")
    there = {"host": "10.0.0.1:8080"}

    assert status(guard, "GET", there) == 401
    assert status(guard, "GET", there, cookie="wrong") == 401
    assert status(guard, "GET", there, token="secre") == 401
    assert status(guard, "GET", there, cookie="secret") == 200
    assert status(guard, "GET", there, token="secret") == 200
    assert status(guard, "GET", {**there, "authorization": "Bearer secret"}) == 200
    assert not Guard(("*",)).is_token(None)
