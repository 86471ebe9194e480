from tidelog.cli.demos.demo_load import Tally, tally


def test_each_acknowledged_number_is_read_once() -> None:
    assert tally(3, [0, 1, 2]) == Tally(3, 0, 0)
    assert tally(3, [0, 1, 2]).is_clean


def test_what_was_never_acknowledged_may_be_there() -> None:
    assert tally(2, [0, 1, 2, 3]).is_clean


def test_losses_and_doubles_are_counted() -> None:
    assert tally(4, [0, 2, 2, 2, 5]) == Tally(4, 2, 2)
    assert not tally(4, [0, 2, 2, 2, 5]).is_clean


def test_nothing_written_shows_nothing() -> None:
    assert not tally(0, []).is_clean
