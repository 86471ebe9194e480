"""Any keys and values that are written as .properties are read back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.config.properties import format_properties, parse_properties

TEXT = st.text(st.characters(blacklist_categories=()), max_size=20)


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_properties_read_back(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties


@pytest.mark.parametrize(
    "value",
    [
        "a,b",
        "a\\b",
        "a\nb",
        "a\r\nb\tc",
        "\\u0041",
        " leading and trailing ",
        "#no=comment: $HOME !",
        "ends with \\",
        "Überfluß 潮 🌊",
        "\udcff undecodable",
        "",
    ],
)
def test_a_value_reads_back(value: str) -> None:
    written = format_properties({"log.dirs": value, "after": "x"})
    assert written.isascii()
    assert parse_properties(written) == {"log.dirs": value, "after": "x"}


def test_what_java_writes_beyond_16_bits_is_one_character() -> None:
    assert parse_properties("key=\\uD83C\\uDF0A") == {"key": "🌊"}
