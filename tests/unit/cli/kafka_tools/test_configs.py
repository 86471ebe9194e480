import click
import pytest

from tidelog.cli.kafka_tools.configs import parse_additions


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[x,y],b=2", {"a": "x,y", "b": "2"}),
        ("a=,b=x=y", {"a": "", "b": "x=y"}),
    ],
)
def test_brackets_keep_lists_together(text: str, added: dict[str, str]) -> None:
    assert parse_additions(text) == added


def test_an_addition_without_a_value_is_refused() -> None:
    with pytest.raises(click.UsageError, match="is not name=value"):
        parse_additions("a=1,b")
