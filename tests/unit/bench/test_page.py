"""The page of a benchmark is whole, loads nothing, and plots each measure."""

import re
from html.parser import HTMLParser

from tests.unit.bench.results_of_two import results_of_two

from tidelog.bench.page import page
from tidelog.bench.results import Results


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def tags_of(text: str) -> _Tags:
    tags = _Tags()
    tags.feed(text)
    return tags


def test_each_measure_has_a_row_and_a_plot_with_a_bar_for_each_system() -> None:
    seen = tags_of(page(results_of_two())).seen
    assert seen.count("tr") == 3
    assert seen.count("svg") == 2
    assert seen.count("rect") == 3


def test_the_page_loads_nothing() -> None:
    text = page(results_of_two())
    assert tags_of(text).addresses == []
    assert not re.search(r"https?:|url\(|@import", text)


def test_words_of_the_machine_are_escaped() -> None:
    assert "machine: 2 &lt;cores&gt;" in page(results_of_two())


def test_the_largest_value_fits_into_the_plot() -> None:
    ends = [float(end) for end in re.findall(r'x2="([\d.]+)"', page(results_of_two()))]
    assert max(ends) < 640


def test_load_of_others_is_mentioned() -> None:
    assert "during 1 of 2 measures" in page(results_of_two())
    assert "The machine was quiet." in page(Results(("tidelog",), {}))
