"""PLAIN: names and passwords of a JAAS entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.sasl.plain import PlainServer, plain_message

USERS = {"alice": "secret", "zoë": "pässword"}


@pytest.mark.parametrize("user", list(USERS))
def test_the_right_password(user: str) -> None:
    assert PlainServer(USERS).step(plain_message(user, USERS[user])).user == user


def test_an_authorization_id_is_the_same_user() -> None:
    assert PlainServer(USERS).step(b"alice\0alice\0secret").user == "alice"


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (b"\0alice\0guess", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0secret", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0\xff\0x", "Invalid SASL/PLAIN response: expected UTF-8"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
    ],
)
def test_anything_else_is_refused(message: bytes, failure: str) -> None:
    step = PlainServer(USERS).step(message)
    assert (step.failure, step.user, step.answer) == (failure, None, b"")


@given(st.binary(max_size=100))
def test_nobody_gets_in_with_noise(message: bytes) -> None:
    assert PlainServer(USERS).step(message).user is None
