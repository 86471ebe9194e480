"""Java's .properties format."""

from tidelog.config.properties import parse_properties


def test_keys_and_values() -> None:
    text = """
# a comment
! another
a=1
b: 2
c 3
  d   =   4
e
f==5
"""
    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "4",
        "e": "",
        "f": "=5",
    }


def test_the_last_of_a_repeated_key_counts() -> None:
    assert parse_properties("a=1\r\na=2\r\n") == {"a": "2"}


def test_a_line_goes_on_after_a_backslash() -> None:
    assert parse_properties("a=1,\\\n   2,\\\n\t3\nb=x\\\\\nc=y\\") == {
        "a": "1,2,3",
        "b": "x\\",
        "c": "y",
    }
    assert parse_properties("a=1\\\n#2") == {"a": "1#2"}, "no comment in the middle of a line"


def test_escapes() -> None:
    assert parse_properties(r"a\ b\=c=x\ty\u0041\:") == {"a b=c": "x\tyA:"}
    assert parse_properties(r"a=\uZZ") == {"a": "uZZ"}
    assert parse_properties("listeners=PLAINTEXT://:9092") == {"listeners": "PLAINTEXT://:9092"}
