"""A part of a micro-batch is written once, however its tries are cut, mixed and killed (F93)."""

import threading
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipelines.transactional.transactions_in_memory import Attempt, MemoryCluster, Write

from tidelog_pipelines.failures import TRANSACTION_LOST
from tidelog_pipelines.sinks.transactional.markers import (
    FIRST_DAY_MS,
    Marker,
    Planned,
    Refused,
    check,
    must_keep_writers,
    read_marker,
)
from tidelog_pipelines.sinks.transactional.writer import (
    Outcome,
    Record,
    Transactions,
    WriteFailed,
    bounded,
    write_once,
)

EPOCHS = 3
ROWS = 2


def run(cuts: st.DataObject, write: Write) -> list[bytes]:
    """Run three micro-batches of a query; returns the records that readers see.

    New tries of a micro-batch begin at any time. Earlier tries go on beside them, even after the
    query has continued with the next micro-batch. Each try computes other rows.
    """
    cluster, tries, number = MemoryCluster(), [], 0
    for epoch in range(EPOCHS):
        is_done = False
        while not is_done:
            values = [b"%d/%d/%d" % (epoch, number, row) for row in range(ROWS)]
            newest = Attempt(cluster, Marker(epoch, 1, "plan"), values, write)
            tries.append(newest)
            number += 1
            for _ in range(cuts.draw(st.integers(0, 8))):
                one = tries[cuts.draw(st.integers(0, len(tries) - 1))]
                how = cuts.draw(st.sampled_from(("go", "go", "go", "kill", "lose")))
                one.step(kill=how == "kill", lose_answer=how == "lose")
            if number > 12:
                newest.finish()
            # A driver that dies here tries the micro-batch again, although it was written.
            is_done = any(one.outcome is not None and one is newest for one in tries) and cuts.draw(
                st.booleans()
            )
            is_done = is_done or (number > 12 and newest.outcome is not None)
    for one in tries:
        one.finish()
    return cluster.visible


def is_exactly_once(visible: list[bytes]) -> bool:
    """Whether readers see the rows of one try of each micro-batch, in order."""
    found = [tuple(map(int, value.split(b"/"))) for value in visible]
    order = [(epoch, row) for epoch, _, row in found]
    tries = {(epoch, number) for epoch, number, _ in found}
    wanted = [(epoch, row) for epoch in range(EPOCHS) for row in range(ROWS)]
    return order == wanted and len(tries) == EPOCHS


@settings(max_examples=300, deadline=None)
@given(cuts=st.data())
def test_f93_each_micro_batch_is_seen_once_however_its_tries_are_cut(cuts: st.DataObject) -> None:
    assert is_exactly_once(run(cuts, write_once))


def without_fence_first(
    transactions: Transactions, marker: Marker, records: Iterable[Record]
) -> Outcome:
    """The wrong order: a try that is not fenced yet can commit after the look at the marker."""
    before = transactions.marker()
    transactions.fence()
    if before is not None and before.epoch >= marker.epoch:
        return Outcome(0, is_repeated=True)
    transactions.begin()
    for record in records:
        transactions.send(record)
    transactions.commit(marker)
    return Outcome(ROWS, is_repeated=False)


def without_marker(
    transactions: Transactions, marker: Marker, records: Iterable[Record]
) -> Outcome:
    """Spark's own sink in a transaction: a new try does not know of the earlier one."""
    transactions.fence()
    transactions.begin()
    for record in records:
        transactions.send(record)
    transactions.commit(marker)
    return Outcome(ROWS, is_repeated=False)


@pytest.mark.parametrize(("wrong", "steps"), [(without_fence_first, 1), (without_marker, 0)])
def test_f93_wrong_steps_show_a_micro_batch_twice(wrong: Write, steps: int) -> None:
    cluster, marker = MemoryCluster(), Marker(0, 1, "plan")
    first = Attempt(cluster, marker, [b"0/0/0", b"0/0/1"], wrong)
    second = Attempt(cluster, marker, [b"0/1/0", b"0/1/1"], wrong)
    for _ in range(steps):
        second.step()
    first.finish()
    second.finish()
    assert len(cluster.visible) == 2 * ROWS


def test_f93_a_try_that_divided_the_rows_in_another_way_is_not_mixed_with_this_one() -> None:
    cluster = MemoryCluster()
    cluster.marker = Marker(4, 2, "plan")
    attempt = Attempt(cluster, Marker(4, 3, "plan"), [b"x"], expect_failure)
    attempt.finish()
    assert cluster.visible == []
    assert attempt.outcome == Outcome(-1, is_repeated=False)


def expect_failure(
    transactions: Transactions, marker: Marker, records: Iterable[Record]
) -> Outcome:
    with pytest.raises(WriteFailed, match="an earlier try of micro-batch 4 has ended"):
        write_once(transactions, marker, records)
    return Outcome(-1, is_repeated=False)


def test_a_marker_is_an_offset_and_its_metadata() -> None:
    marker = Marker(0, 3, "abc")
    assert (marker.offset, marker.metadata) == (1, "3 abc")
    assert read_marker(marker.offset, marker.metadata) == marker
    assert read_marker(-1001, None) is None
    assert read_marker(7, "") == Marker(6, 0, "")


def test_f93_markers_that_do_not_fit_the_checkpoint_are_refused() -> None:
    planned, now = Planned(5, "plan", 1_000_000), 1_000_000 + FIRST_DAY_MS

    def checked(*found: Marker, late_ms: int = 0, rewrites: bool = False) -> None:
        check(planned, dict(enumerate(found)), now + late_ms, rewrites=rewrites)

    checked()
    checked(Marker(4, 2, "before"), Marker(5, 2, "plan"), late_ms=1)
    checked(Marker(4, 1, "before"), late_ms=1, rewrites=True)
    with pytest.raises(Refused, match="up to number 6, and the checkpoint is at number 5"):
        checked(Marker(6, 1, "next"))
    with pytest.raises(Refused, match="was committed with other source offsets"):
        checked(Marker(5, 1, "other"))
    for found in ((), (Marker(4, 1, "before"),)):
        with pytest.raises(Refused, match="planned more than a day ago"):
            checked(*found, late_ms=1)


def test_a_micro_batch_that_is_committed_in_part_keeps_its_writers() -> None:
    assert not must_keep_writers(5, {})
    assert not must_keep_writers(5, {0: Marker(4, 2, "p"), 1: Marker(4, 2, "p")})
    assert must_keep_writers(5, {0: Marker(5, 2, "p"), 1: Marker(4, 2, "p")})


def test_a_call_that_never_returns_ends_the_try() -> None:
    with pytest.raises(WriteFailed, match=TRANSACTION_LOST):
        bounded(threading.Event().wait, 0.01)


def test_a_bounded_call_returns_its_result_or_its_error() -> None:
    assert bounded(lambda: 7, 60) == 7
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 // 0, 60)
