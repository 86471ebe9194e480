"""The table and the JSON of a benchmark: medians, spreads, ratios, and the load of others."""

import json

import pytest
from tests.unit.bench.results_of_two import LATENCY, THROUGHPUT, results_of_two

from tidelog.bench.results import Results, number


def test_a_row_has_medians_spreads_the_ratio_and_the_load_of_others() -> None:
    results = results_of_two()
    assert results.heads[-2:] == ["tidelog / kafka", "others, % of a core"]
    assert list(results.rows()) == [
        [LATENCY.name, "ms", "lower", "2 (1 to 3)", "5 (4 to 8)", "0.40", "50"],
        [THROUGHPUT.name, "MB/s", "higher", "1,234", "-", "-", "0"],
    ]


def test_one_system_has_no_ratio() -> None:
    results = Results(("tidelog",), {})
    results.add("tidelog", LATENCY, 2.0, 0.0)
    assert list(results.rows()) == [[LATENCY.name, "ms", "lower", "2", "0"]]


def test_a_ratio_to_nothing_is_left_out() -> None:
    results = Results(("tidelog", "kafka"), {})
    results.add("tidelog", LATENCY, 2.0, 0.0)
    results.add("kafka", LATENCY, 0.0, 0.0)
    assert results.ratio(LATENCY) is None


def test_the_json_has_every_value() -> None:
    found = json.loads(json.dumps(results_of_two().as_json()))
    latency, throughput = found["measures"]
    assert latency["systems"]["kafka"] == {"values": [4.0, 8.0, 5.0], "others": [0.5, 0.5, 0.5]}
    assert latency["ratio"] == pytest.approx(0.4)
    assert throughput["better"] == "higher"
    assert throughput["ratio"] is None


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1,234"), (99.96, "100"), (0.01234, "0.0123"), (0.0, "0")]
)
def test_three_digits_are_shown(value: float, shown: str) -> None:
    assert number(value) == shown
