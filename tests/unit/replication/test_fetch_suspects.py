"""The search for partitions that make whole fetches fail (F62)."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.replication.isr.fetch_suspects import FetchSuspects
from tidelog.replication.isr.follower import PartitionFollower

PARTITIONS = 6


def followers() -> list[PartitionFollower]:
    made = [PartitionFollower(epoch=1) for _ in range(PARTITIONS)]
    for one in made:
        one.is_in_session = True
    return made


def test_f62_a_partition_that_is_dropped_while_it_is_tested_leaves_no_other_one_out() -> None:
    suspects: FetchSuspects[PartitionFollower] = FetchSuspects()
    first, second = followers()[:2]
    for _ in range(2):
        suspects.failed([first, second])
    assert second.is_held_back

    suspects.forget(first)
    suspects.passed()

    assert not second.is_held_back


STEPS = st.sampled_from(["fail", "fail", "pass", "forget the first", "forget the last"])


@given(st.lists(STEPS, max_size=40))
def test_f62_once_fetches_pass_no_partition_is_left_out(steps: list[str]) -> None:
    suspects: FetchSuspects[PartitionFollower] = FetchSuspects()
    followed = followers()
    for step in steps:
        if step == "fail":
            suspects.failed(followed)
        elif step == "pass":
            suspects.passed()
        elif followed:
            suspects.forget(followed.pop(0 if step == "forget the first" else -1))
    for _ in range(2 * PARTITIONS):
        suspects.passed()
    assert not any(one.is_held_back for one in followed)
