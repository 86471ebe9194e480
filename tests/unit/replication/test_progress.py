"""The leader's knowledge of a follower: hand-made cases, then any sequence of fetches."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.replication.isr.progress import FollowerProgress

LAG = 1_000


def test_a_fetch_at_the_end_is_caught_up_now() -> None:
    progress = FollowerProgress(0)

    progress.fetched(10, 10, broker_epoch=3, now=5_000)

    assert (progress.end, progress.broker_epoch, progress.last_caught_up) == (10, 3, 5_000)


def test_a_fetch_at_the_end_of_the_previous_fetch_was_caught_up_then() -> None:
    progress = FollowerProgress(0)
    progress.fetched(5, 10, -1, now=5_000)
    progress.fetched(10, 20, -1, now=6_000)

    assert progress.last_caught_up == 5_000
    assert progress.is_caught_up(20, 6_000, LAG)
    assert not progress.is_caught_up(20, 6_001, LAG)


def test_a_first_fetch_before_the_end_shows_nothing() -> None:
    progress = FollowerProgress(100)
    progress.fetched(5, 10, -1, now=5_000)

    assert progress.last_caught_up == 100


def test_at_the_end_it_is_never_behind() -> None:
    progress = FollowerProgress(0)
    progress.fetched(10, 10, -1, now=1)

    assert progress.is_caught_up(10, 1_000_000, LAG)
    assert not progress.is_caught_up(11, 1_000_000, LAG)


def test_it_may_be_ahead_of_what_the_leader_has_flushed() -> None:
    progress = FollowerProgress(0)
    progress.fetched(12, 10, -1, now=1)

    assert progress.is_caught_up(11, 1_000_000, LAG)


def test_a_fetch_without_a_word_counts_only_at_the_end_and_never_says_where_it_is() -> None:
    progress = FollowerProgress(0)
    progress.fetched(10, 10, 3, now=5_000)

    progress.fetched_again(10, at=6_000)
    assert (progress.end, progress.last_caught_up, progress.last_fetch) == (10, 6_000, 6_000)
    progress.fetched_again(10, at=5_500)  # a fetch of an older session
    progress.fetched_again(11, at=7_000)
    assert (progress.end, progress.last_caught_up, progress.last_fetch) == (10, 6_000, 6_000)


STEPS = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=30
)


@given(STEPS)
def test_last_caught_up_is_a_time_at_which_it_held_all_that_there_was(
    steps: list[tuple[int, int, int]],
) -> None:
    """In each step time passes, the leader appends and the follower fetches."""
    progress, now, leader_end, offset = FollowerProgress(0), 0, 0, 0
    ends_over_time = [(0, 0)]
    for wait, appended, gained in steps:
        now, leader_end = now + wait, leader_end + appended
        ends_over_time.append((now, leader_end))
        offset = min(leader_end, offset + gained)
        before = progress.last_caught_up

        progress.fetched(offset, leader_end, -1, now)

        assert before <= progress.last_caught_up <= now
        end_then = max(end for at, end in ends_over_time if at <= progress.last_caught_up)
        # Records may be appended later in the millisecond in which the follower was caught up.
        assert offset >= end_then or any(
            at == progress.last_caught_up and end <= offset for at, end in ends_over_time
        )
