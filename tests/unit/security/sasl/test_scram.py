"""SCRAM: only those who know the password get in, and no message can be used twice."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.security.sasl.scram_client import ScramClient

from tidelog.security.sasl.exchange import SaslStep
from tidelog.security.sasl.scram import MECHANISMS, ScramKeys, ScramServer, keys_of, salted

SALT, ITERATIONS, SERVER_NONCE = b"0123456789abcdef", 4096, "%hvYDpWUa2RaTCAfuxFIlj)hNlF"


def credential(mechanism: str, password: str = "secret") -> ScramKeys:
    name = MECHANISMS[mechanism][1]
    return keys_of(salted(password, SALT, ITERATIONS, name), SALT, ITERATIONS, name)


def server(mechanism: str = "SCRAM-SHA-256", nonce: str = SERVER_NONCE) -> ScramServer:
    keys = {"alice": credential(mechanism), "a,b=c": credential(mechanism)}
    return ScramServer(mechanism, keys.get, nonce)


def client(mechanism: str = "SCRAM-SHA-256", **changes: str) -> ScramClient:
    values = {"user": "alice", "password": "secret", **changes}
    return ScramClient(values["user"], values["password"], MECHANISMS[mechanism][1])


def is_refused(step: SaslStep) -> bool:
    return step.failure is not None and step.user is None and step.answer == b""


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_the_right_password(mechanism: str) -> None:
    asked, checked = client(mechanism), server(mechanism)
    first = checked.step(asked.first())
    last = checked.step(asked.final(first.answer))

    assert (first.user, first.failure) == (None, None)
    assert (last.user, last.failure) == ("alice", None)
    assert asked.trusts(last.answer)


def test_the_exchange_of_rfc_7677() -> None:
    name = "sha256"
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    keys = keys_of(salted("pencil", salt, 4096, name), salt, 4096, name)
    checked = ScramServer("SCRAM-SHA-256", {"user": keys}.get, SERVER_NONCE + "$k0")
    first = checked.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first.answer == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    last = checked.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last.answer == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert last.user == "user"


def test_a_name_with_a_comma_and_an_equals_sign() -> None:
    asked, checked = client(user="a=2Cb=3Dc"), server()
    assert checked.step(asked.final(checked.step(asked.first()).answer)).user == "a,b=c"


def test_a_wrong_password_and_an_unknown_user_get_the_same_words() -> None:
    asked, checked = client(password="guess"), server()
    wrong = checked.step(asked.final(checked.step(asked.first()).answer))
    unknown = server().step(client(user="mallory").first())

    assert is_refused(wrong)
    assert wrong == unknown


def test_a_recorded_exchange_cannot_be_replayed() -> None:
    asked, checked = client(), server()
    final = asked.final(checked.step(asked.first()).answer)
    assert checked.step(final).user == "alice"

    later = server(nonce="another")
    later.step(asked.first())
    assert is_refused(later.step(final))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,n=alice",
        b"n,,m=x,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=alice,r=" + b"x" * 100_000,
        b"n,,n=alice,r=abc,tokenauth=true",
        b"\xff\xfe",
        b"n,,n=alice\0,r=abc",
    ],
)
def test_a_bad_first_message_is_refused(first: bytes) -> None:
    assert is_refused(server().step(first))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c=biws", b"c=eSws"),
        (b",p=", b",p=AAAA"),
        (b"r=rOpr", b"r=xOpr"),
        (b",p=", b",m=1,p="),
        (b"c=biws", b"c=bi ws"),
    ],
)
def test_a_changed_last_message_is_refused(old: bytes, new: bytes) -> None:
    asked, checked = client(), server()
    final = asked.final(checked.step(asked.first()).answer)
    assert old in final
    assert is_refused(checked.step(final.replace(old, new, 1)))


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=3))
def test_nobody_gets_in_with_noise(messages: list[bytes]) -> None:
    checked = server()
    checked.step(client().first())
    for message in messages:
        step = checked.step(message)
        assert is_refused(step)
        break
