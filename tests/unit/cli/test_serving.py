import pytest

from tidelog.cli.serving import plain_form


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--config", "a"], ("a", {})),
        (["--config", "a", "--override", "x.y= 1"], ("a", {"x.y": "1"})),
        (["--override", "k=a=b", "--config", "a"], ("a", {"k": "a=b"})),
        ([], None),
        (["--help"], None),
        (["--config"], None),
        (["--config", "a", "--config", "b"], None),
        (["--config", "a", "--override", "novalue"], None),
        (["--config=a"], None),
        (["a"], None),
    ],
)
def test_plain_form(arguments: list[str], found: tuple[str, dict[str, str]] | None) -> None:
    assert plain_form(arguments) == found
