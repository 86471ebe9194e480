"""docs/configuration.md equals the page that is generated from the tables of keys."""

from pathlib import Path

from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS
from tidelog.config.keys.topic_keys import TOPIC_KEYS
from tidelog.config.reference import configuration_page

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_is_generated() -> None:
    assert PAGE.read_text() == configuration_page(), (
        "run python -m tidelog.config.reference > docs/configuration.md"
    )


def test_the_page_has_every_key() -> None:
    page = configuration_page()
    for name in (*BROKER_KEYS, *IGNORED_KEYS, *TOPIC_KEYS):
        assert f"\n| `{name}` | " in page
