"""Cut links, and the delay of bytes on slow links."""

from tidelog.network.conditions import CHUNK, CLIENTS, MIN_CHUNK, Conditions, Slowness, Way

ONE_TO_TWO = Way(1, 2, "PLAINTEXT")
TWO_TO_ONE = Way(2, 1, "PLAINTEXT")


def test_a_cut_is_one_way_and_of_one_listener() -> None:
    conditions = Conditions()
    conditions.cut([1], [2, CLIENTS], ["PLAINTEXT"])
    assert conditions.is_cut(ONE_TO_TWO)
    assert conditions.is_cut(Way(1, CLIENTS, "PLAINTEXT"))
    assert not conditions.is_cut(TWO_TO_ONE)
    assert not conditions.is_cut(Way(1, 2, "CONTROLLER"))
    conditions.heal()
    assert not conditions.is_cut(ONE_TO_TWO)


def test_both_ends_delay_what_passes() -> None:
    conditions = Conditions()
    conditions.slow(1, Slowness(latency_seconds=0.25))
    conditions.slow(2, Slowness(latency_seconds=0.5))
    assert conditions.send(ONE_TO_TWO, 1000, now=10.0) == (10.0, 10.75)
    assert conditions.send(Way(3, 4, "PLAINTEXT"), 1000, now=10.0) == (10.0, 10.0)


def test_all_that_a_node_says_shares_one_narrow_line() -> None:
    conditions = Conditions()
    conditions.slow(1, Slowness(bytes_per_second=1000))
    assert conditions.send(ONE_TO_TWO, 500, now=0.0) == (0.5, 0.5)
    assert conditions.send(Way(1, 3, "PLAINTEXT"), 500, now=0.0) == (1.0, 1.0)
    # The other direction has its own rate.
    assert conditions.send(TWO_TO_ONE, 500, now=0.0) == (0.5, 0.5)
    # An idle link has no backlog.
    assert conditions.send(ONE_TO_TWO, 500, now=9.0) == (9.5, 9.5)


def test_a_narrow_line_is_shared_in_small_turns() -> None:
    conditions = Conditions()
    assert conditions.chunk(ONE_TO_TWO) == CHUNK
    conditions.slow(2, Slowness(bytes_per_second=100_000))
    assert conditions.chunk(ONE_TO_TWO) == 2_000
    conditions.slow(2, Slowness(bytes_per_second=1))
    assert conditions.chunk(ONE_TO_TWO) == MIN_CHUNK
