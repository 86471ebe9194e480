"""A principal is sent to the controller in Kafka's bytes, and damaged bytes are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_reader

from tidelog.protocol.malformed import MalformedMessage
from tidelog.security.principal import (
    ANONYMOUS,
    Principal,
    decode_principal,
    encode_principal,
    parse_principal,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
PRINCIPALS = st.builds(Principal, TEXT, TEXT, st.booleans())


@given(PRINCIPALS)
def test_a_principal_survives_encoding(principal: Principal) -> None:
    assert decode_principal(encode_principal(principal)) == principal


@given(PRINCIPALS)
def test_the_bytes_are_those_of_kafkas_schema(principal: Principal) -> None:
    encoded = encode_principal(principal)
    read, _ = entity_reader(DefaultPrincipalData)(memoryview(encoded), 2)

    assert (read.type_, read.name, read.token_authenticated) == principal
    assert encoded[:2] == b"\0\0"


@given(PRINCIPALS, st.integers(0, 12))
def test_bytes_that_are_cut_short_are_refused(principal: Principal, length: int) -> None:
    encoded = encode_principal(principal)
    with pytest.raises(MalformedMessage):
        decode_principal(encoded[: min(length, len(encoded) - 2)])


@given(st.binary(max_size=64))
def test_any_bytes_are_decoded_or_refused(noise: bytes) -> None:
    with suppress(MalformedMessage):
        decode_principal(b"\0\0" + noise)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="unknown version"):
        decode_principal(b"\0\1" + encode_principal(ANONYMOUS)[2:])


def test_a_principal_is_written_as_type_and_name() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert parse_principal("User:CN=a,OU=b:c") == Principal("User", "CN=a,OU=b:c")


@pytest.mark.parametrize("text", ["", "alice", "User:", ":alice"])
def test_a_principal_without_type_or_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_principal(text)
