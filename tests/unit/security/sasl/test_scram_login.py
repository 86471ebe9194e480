"""The client's side of SCRAM: it proves that it knows the password, and trusts no false server."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.sasl.scram import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    BadScramAnswer,
    ScramClient,
    ScramServer,
    keys_of,
    salted,
)

SALT = b"0123456789abcdef"
B64_SALT = b64encode(SALT).decode()


def client(mechanism: str = "SCRAM-SHA-256", user: str = "node") -> ScramClient:
    return ScramClient(mechanism, user, "secret", "nonce")


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
@pytest.mark.parametrize("user", ["node", "a,b=c"])
def test_a_client_and_a_server_with_the_same_password_agree(mechanism: str, user: str) -> None:
    name = MECHANISMS[mechanism][1]
    keys = {user: keys_of(salted("secret", SALT, 4096, name), SALT, 4096, name)}
    asked, checked = client(mechanism, user), ScramServer(mechanism, keys.get, "more")
    last = checked.step(asked.final(checked.step(asked.first()).answer))
    assert (last.user, last.failure) == (user, None)
    asked.check(last.answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "e=other-error",
        f"r=another,s={B64_SALT},i=4096",
        f"r=nonceX,s={B64_SALT},i={MIN_ITERATIONS - 1}",
        f"r=nonceX,s={B64_SALT},i={MAX_ITERATIONS + 1}",
        f"r=nonceX,s={B64_SALT},i=999999999",
        f"r=nonceX,s={B64_SALT},i=99999999999999999999",
        "r=nonceX,s=abc,i=4096",
        f"r=nonceX,s={'A' * 2000},i=4096",
    ],
)
def test_a_first_answer_that_lies_gets_no_proof(answer: str) -> None:
    with pytest.raises(BadScramAnswer):
        client().final(answer.encode())


@given(st.binary(max_size=200))
def test_no_bytes_of_a_server_crash_the_client(answer: bytes) -> None:
    with pytest.raises(BadScramAnswer):
        client().final(answer)


def test_a_server_that_does_not_know_the_password_is_not_trusted() -> None:
    asked = client()
    asked.final(f"r=nonceX,s={B64_SALT},i=4096".encode())
    for answer in (b"", b"v=", b"v=" + b64encode(bytes(32)), b"e=other-error"):
        with pytest.raises(BadScramAnswer):
            asked.check(answer)
