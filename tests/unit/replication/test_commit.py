"""The two commit rules: hand-made cases, then properties of all cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.replication.commit import InSync, isr_committed, quorum_committed


def in_sync(*agreed: int, asked_for: tuple[int, ...] = (), minimum: int = 1) -> InSync:
    return InSync(frozenset(agreed), frozenset((*agreed, *asked_for)), minimum)


# -- the rule for in-sync replicas -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "isr", "floor", "committed"),
    [
        ({1: 9}, in_sync(1), 0, 9),
        ({1: 9, 2: 7, 3: 4}, in_sync(1, 2, 3), 0, 4),
        # Replicas that are not in sync do not count.
        ({1: 9, 2: 7, 3: 4}, in_sync(1, 2), 0, 7),
        # A proposed replica counts, because the controller may already have added it (F12).
        ({1: 9, 2: 7, 3: 4}, in_sync(1, 2, asked_for=(3,)), 0, 4),
        # A replica has not fetched in this epoch, so its end is unknown (-1).
        ({1: 9, 2: -1}, in_sync(1, 2), 3, 3),
        # Below min.insync.replicas the high watermark stays, although all replicas hold more (F43).
        ({1: 9, 2: 7, 3: 4}, in_sync(1, minimum=2), 3, 3),
        # A proposed replica does not count for min.insync.replicas.
        ({1: 9, 2: 9}, in_sync(1, asked_for=(2,), minimum=2), 3, 3),
        # A replica with fewer records does not move the high watermark back.
        ({1: 9, 2: 2}, in_sync(1, 2), 5, 5),
    ],
)
def test_isr_rule_by_hand(ends: dict[int, int], isr: InSync, floor: int, committed: int) -> None:
    assert isr_committed(ends, isr, floor) == committed


REPLICAS = range(1, 6)
ENDS = st.fixed_dictionaries({replica: st.integers(-1, 20) for replica in REPLICAS})
SETS = st.frozensets(st.sampled_from(REPLICAS), min_size=1)
FLOORS = st.integers(0, 20)


@given(ENDS, SETS, SETS, st.integers(1, 3), FLOORS)
def test_isr_rule_commits_only_what_every_possible_in_sync_replica_holds(
    ends: dict[int, int],
    agreed: frozenset[int],
    asked: frozenset[int],
    minimum: int,
    floor: int,
) -> None:
    isr = InSync(agreed, agreed | asked, minimum)

    committed = isr_committed(ends, isr, floor)

    assert committed >= floor
    if committed > floor:
        assert len(agreed) >= minimum
        assert all(ends[replica] >= committed for replica in isr.maximal)


@given(ENDS, SETS, SETS, FLOORS)
def test_a_larger_maximal_set_never_commits_more(
    ends: dict[int, int], agreed: frozenset[int], asked: frozenset[int], floor: int
) -> None:
    smaller = isr_committed(ends, InSync(agreed, agreed, 1), floor)

    assert isr_committed(ends, InSync(agreed, agreed | asked, 1), floor) <= smaller


# -- the rule for a quorum -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "epoch_start", "floor", "committed"),
    [
        ([9], 0, 0, 9),
        ([9, 7, 4], 0, 0, 7),
        ([9, 4, 4], 0, 0, 4),
        # A majority is two of two and three of four.
        ([9, 4], 0, 0, 4),
        ([9, 9, 4, 4], 0, 0, 4),
        ([9, 9, 9, 4], 0, 0, 9),
        ([9, 8, 7, 4, 4], 0, 0, 7),
        # The majority holds only records of earlier epochs, which another leader could remove.
        ([9, 7, 4], 7, 3, 3),
        ([9, 8, 4], 7, 3, 8),
        ([9, 2, 2], 0, 5, 5),
    ],
)
def test_quorum_rule_by_hand(ends: list[int], epoch_start: int, floor: int, committed: int) -> None:
    assert quorum_committed(dict(enumerate(ends)), range(len(ends)), epoch_start, floor) == (
        committed
    )


@given(st.lists(st.integers(0, 20), min_size=1, max_size=7), st.integers(0, 20), FLOORS)
def test_quorum_rule_commits_what_every_majority_meets(
    ends: list[int], epoch_start: int, floor: int
) -> None:
    committed = quorum_committed(dict(enumerate(ends)), range(len(ends)), epoch_start, floor)

    assert committed >= floor
    if committed > floor:
        holders = sum(end >= committed for end in ends)
        assert holders > len(ends) // 2
        assert committed > epoch_start
