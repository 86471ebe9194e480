"""The table of `demo acks`, and its comparison with the expected results."""

from tidelog.cli.demos.acks_trial import CELLS, RECORDS, Cell
from tidelog.cli.demos.demo_acks import expected, is_as_expected, table
from tidelog.cli.demos.demo_load import Tally
from tidelog.client.producer import ACKS_ALL

LOST, KEPT = Tally(RECORDS, RECORDS, 0), Tally(RECORDS, 0, 0)


def test_only_acks_all_with_followers_saves_anything_and_only_min_isr_saves_everything() -> None:
    saved = {cell for cell in CELLS if not expected(cell).at_once}
    assert saved == {Cell(ACKS_ALL, 3, 1), Cell(ACKS_ALL, 3, 2)}
    assert {cell for cell in saved if not expected(cell).after_lag} == {Cell(ACKS_ALL, 3, 2)}


def test_a_loss_where_none_is_allowed_and_none_where_one_must_be_are_both_surprises() -> None:
    safe, risky = Cell(ACKS_ALL, 3, 2), Cell(1, 3, 1)
    assert is_as_expected(safe, KEPT, KEPT)
    assert not is_as_expected(safe, KEPT, Tally(RECORDS, 1, 0))
    assert not is_as_expected(safe, KEPT, Tally(RECORDS, 0, 1))
    assert is_as_expected(risky, LOST, LOST)
    assert not is_as_expected(risky, KEPT, LOST)
    assert not is_as_expected(risky, Tally(0, 0, 0), LOST)


def test_every_combination_has_a_row_and_a_reason() -> None:
    counts = dict.fromkeys(CELLS, LOST)
    text = "\n".join(table(counts, counts))
    for cell in CELLS:
        assert f"{cell.acks_name:>4}{cell.replicas:>10}{cell.min_isr:>9}     100" in text
        assert expected(cell).why.split()[0] in text
