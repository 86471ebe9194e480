"""JAAS entries as Kafka's documentation writes them."""

import pytest

from tidelog.config.jaas import BadJaas, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_an_entry_of_several_lines() -> None:
    entry = parse_jaas(
        f"""{MODULE} required
            username="admin"
            password="admin-secret"
            user_admin="admin-secret"
            user_alice='a "quoted" secret'
            user_carol=plain;"""
    )
    assert entry.module == MODULE
    assert entry.options["username"] == "admin"
    assert entry.users() == {
        "admin": "admin-secret",
        "alice": 'a "quoted" secret',
        "carol": "plain",
    }


def test_escaped_characters() -> None:
    entry = parse_jaas(rf'{MODULE} required password="a\"b\\c;d";')
    assert entry.options["password"] == 'a"b\\c;d'


def test_no_text_of_an_entry_has_a_password() -> None:
    assert "secret" not in repr(parse_jaas(f'{MODULE} required password="secret";'))


@pytest.mark.parametrize(
    "text",
    [
        "",
        MODULE,
        f'{MODULE} maybe password="secret";',
        f'{MODULE} required password="secret',
        f"{MODULE} required secret;",
        f'{MODULE} required password="secret"; other',
    ],
)
def test_anything_else_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadJaas) as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)
