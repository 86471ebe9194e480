"""Common work costs a node no more function calls than the committed table allows.

`python bench/costs.py --write` replaces the table. If a commit raises a cost, its message says why.
"""

import pytest
from tests.sim.cost_table import growth, read

from tidelog.sim.runs.costs import Cost, costs


@pytest.fixture(scope="module")
def measured() -> list[Cost]:
    return costs()


def test_no_work_has_become_more_expensive(measured: list[Cost]) -> None:
    table = read()
    assert [cost.work for cost in measured] == list(table)
    complaints = [growth(table[cost.work], cost) for cost in measured]
    assert not any(complaints), "\n".join(filter(None, complaints))


def test_the_counts_are_the_same_each_time(measured: list[Cost]) -> None:
    assert costs() == measured


def test_a_produce_is_counted_in_the_functions_that_it_needs(measured: list[Cost]) -> None:
    produce = measured[0].functions
    assert produce["node/node.py:Node.handle"] == 1
    assert produce["api/records/produce.py:_appends"] == 1


def test_growth_names_the_functions_that_have_grown() -> None:
    before = Cost("work", 100.0, {"a.py:f": 60.0, "a.py:g": 40.0})
    now = Cost("work", 106.0, {"a.py:f": 60.0, "a.py:g": 43.0, "b.py:new": 3.0})
    assert growth(before, now) == (
        "work: 106.0 calls, 100.0 in the table\n  +3.00 a.py:g\n  +3.00 b.py:new"
    )


def test_a_saving_belongs_into_the_table() -> None:
    before = Cost("work", 100.0, {"a.py:f": 100.0})
    assert "write the table anew" in growth(before, Cost("work", 94.0, {"a.py:f": 94.0}))


def test_growth_within_the_limit_is_no_complaint() -> None:
    before = Cost("work", 100.0, {"a.py:f": 100.0})
    assert growth(before, Cost("work", 105.0, {"a.py:f": 105.0})) == ""
