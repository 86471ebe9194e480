"""The commit rules: an elected replica holds every record that was committed before."""

from hypothesis import given
from hypothesis import strategies as st

from tidelog.model.ids import NodeId
from tidelog.replication.commit import InSync
from tidelog.replication.quorum.state import LogEnd
from tidelog.replication.rules import ISR, QUORUM, ReplicasKnown, goes_as_far, majority_of

ONE, TWO, THREE = LogEnd(1, 10), LogEnd(1, 20), LogEnd(2, 5)
NOBODY: frozenset[NodeId] = frozenset()


def known(log_ends: dict[NodeId, LogEnd], *, lost: frozenset[NodeId] = NOBODY) -> ReplicasKnown:
    return ReplicasKnown((1, 2, 3), {1, 2, 3} - lost, (), log_ends)


def test_under_isr_a_member_of_the_set_leads_and_log_ends_do_not_matter() -> None:
    assert ISR.may_lead(1, ReplicasKnown((1, 2), (1,), (), {}))
    assert not ISR.may_lead(2, ReplicasKnown((1, 2), (1,), (2,), {2: TWO}))
    assert ISR.may_lead(2, ReplicasKnown((1, 2), (), (2,), {}))


def test_f82_the_in_sync_set_alone_elects_nobody_under_quorum() -> None:
    assert not any(QUORUM.may_lead(one, known({})) for one in (1, 2, 3))
    assert not QUORUM.may_lead(1, known({1: TWO}))


def test_f82_only_a_log_that_goes_as_far_as_a_majority_leads() -> None:
    reported = known({1: ONE, 2: TWO})
    assert not QUORUM.may_lead(1, reported)
    assert QUORUM.may_lead(2, reported)


def test_the_epoch_counts_before_the_offset() -> None:
    reported = known({2: TWO, 3: THREE})
    assert QUORUM.may_lead(3, reported)
    assert not QUORUM.may_lead(2, reported)


def test_f84_a_replica_that_lost_its_tail_neither_leads_nor_counts() -> None:
    reported = known({1: ONE, 2: TWO}, lost=frozenset({2}))
    assert not any(QUORUM.may_lead(one, reported) for one in (1, 2, 3))


def test_a_log_whose_records_are_all_deleted_is_compared_by_its_offset() -> None:
    emptied = LogEnd(-1, 15)
    assert goes_as_far(emptied, ONE)
    assert not goes_as_far(ONE, emptied)
    assert not goes_as_far(emptied, TWO)


def test_f83_a_majority_without_a_record_of_the_epoch_commits_nothing() -> None:
    members = InSync(NOBODY, NOBODY, 2, epoch_start=10)
    assert QUORUM.committed({1: 10, 2: 10, 3: 10}, members, 4) == 4
    assert QUORUM.committed({1: 11, 2: 11, 3: 3}, members, 4) == 11


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=5),
    st.data(),
)
def test_f82_f84_an_elected_log_goes_as_far_as_one_of_any_majority_that_lost_nothing(
    ends: list[tuple[int, int]], data: st.DataObject
) -> None:
    replicas = tuple(range(1, len(ends) + 1))
    log_ends = {one: LogEnd(*end) for one, end in zip(replicas, ends, strict=True)}
    reported = data.draw(st.sets(st.sampled_from(replicas)))
    lost = data.draw(st.sets(st.sampled_from(replicas)))
    view = ReplicasKnown(
        replicas, set(replicas) - lost, (), {one: log_ends[one] for one in reported}
    )
    holders = data.draw(
        st.sets(st.sampled_from(replicas), min_size=majority_of(replicas), max_size=len(replicas))
    )
    for leader in (one for one in replicas if QUORUM.may_lead(one, view)):
        assert any(goes_as_far(log_ends[leader], log_ends[one]) for one in holders - lost)
