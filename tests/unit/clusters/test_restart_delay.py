"""How long the supervisor waits before it restarts a dead node."""

from tidelog.clusters.restart_delay import LONG_LIFE_SECONDS, LONGEST_SECONDS, RestartDelay


def test_the_first_death_costs_no_time_and_each_further_one_twice_as_much() -> None:
    delay = RestartDelay()

    assert [delay.after(0.1) for _ in range(5)] == [0, 0.5, 1, 2, 4]


def test_the_delay_has_an_end() -> None:
    delay = RestartDelay()

    assert max(delay.after(0.1) for _ in range(2_000)) == LONGEST_SECONDS


def test_a_long_life_is_forgiven() -> None:
    delay = RestartDelay()
    for _ in range(5):
        delay.after(0.1)

    assert delay.after(LONG_LIFE_SECONDS) == 0
    assert delay.after(0.1) == 0.5
