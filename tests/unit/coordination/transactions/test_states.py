"""The table of transitions is Kafka's, and transactions follow it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.coordination.transactions.coordinator_client import CoordinatorUnderTest

from tidelog.coordination.transactions.initializing import KnownProducer
from tidelog.coordination.transactions.requests import AddPartitions, EndTransaction, InitProducer
from tidelog.coordination.transactions.states import PREVIOUS_STATES, TransactionState
from tidelog.coordination.transactions.transaction import MAX_PRODUCER_EPOCH, Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

S = TransactionState

KAFKA = """
Empty              <- CompleteAbort CompleteCommit Empty
Ongoing            <- CompleteAbort CompleteCommit Empty Ongoing
PrepareCommit      <- Ongoing
PrepareAbort       <- CompleteAbort CompleteCommit Empty Ongoing PrepareEpochFence
CompleteCommit     <- PrepareCommit
CompleteAbort      <- PrepareAbort
Dead               <- CompleteAbort CompleteCommit Empty
PrepareEpochFence  <- Ongoing
"""


def test_the_table_is_kafkas() -> None:
    table = {
        entered.title: " ".join(sorted(state.title for state in previous))
        for entered, previous in PREVIOUS_STATES.items()
    }
    kafka = dict(line.split(maxsplit=2)[::2] for line in KAFKA.strip().splitlines())
    assert table == kafka


def in_state(state: TransactionState) -> Transaction:
    return Transaction(producer_id=1, epoch=4, timeout_ms=9, state=state, started_at=1)


@pytest.mark.parametrize("state", TransactionState)
def test_each_transition_is_allowed_from_kafkas_states_only(state: TransactionState) -> None:
    moves = {
        S.EMPTY: lambda one: one.with_next_epoch(1, -1, 2),
        S.ONGOING: lambda one: one.with_partitions([TopicPartition("t", 0)], 2, 2),
        S.PREPARE_COMMIT: lambda one: one.prepared(S.PREPARE_COMMIT, 2, 2),
        S.PREPARE_ABORT: lambda one: one.prepared(S.PREPARE_ABORT, 2, 2),
        S.PREPARE_EPOCH_FENCE: lambda one: one.fenced(),
    }
    for entered, move in moves.items():
        if state in PREVIOUS_STATES[entered]:
            assert move(in_state(state)).state is entered
        else:
            with pytest.raises(AssertionError):
                move(in_state(state))


def test_f77_a_fence_and_an_abort_never_overflow_the_epoch() -> None:
    last = Transaction(
        producer_id=1, epoch=MAX_PRODUCER_EPOCH - 1, timeout_ms=9, state=S.ONGOING, started_at=1
    )
    aborted = last.fenced().prepared(S.PREPARE_ABORT, 2, 5)
    assert aborted.epoch == MAX_PRODUCER_EPOCH
    assert aborted.completed(6).is_epoch_exhausted


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["init", "recover", "add", "commit", "abort", "markers", "late", "fail over"]
        ),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=30,
)


@given(STEPS)
def test_an_epoch_belongs_to_one_producer_and_one_outcome(
    steps: list[tuple[str, int, bool]],
) -> None:
    """Two instances of a producer with the same id never get the same epoch (F46, F73)."""
    coordinator = CoordinatorUnderTest()
    instances: list[tuple[int, int] | None] = [None, None]
    version = 2
    for step, number, flag in steps:
        mine = instances[number] or (-1, -1)
        match step:
            case "init" | "recover":
                expected = KnownProducer(*mine) if step == "recover" and mine[0] >= 0 else None
                answer = coordinator.result(
                    InitProducer(transactional_id="a", timeout_ms=5_000, expected=expected)
                )
                if answer.error is ErrorCode.none:
                    assert (answer.producer_id, answer.epoch) != instances[1 - number]
                    instances[number] = (answer.producer_id, answer.epoch)
            case "add":
                coordinator.result(
                    AddPartitions(
                        transactional_id="a",
                        producer_id=mine[0],
                        epoch=mine[1],
                        partitions=(TopicPartition("t", int(flag)),),
                        client_version=version,
                    )
                )
            case "commit" | "abort":
                answer = coordinator.result(
                    EndTransaction(
                        transactional_id="a",
                        producer_id=mine[0],
                        epoch=mine[1],
                        commits=step == "commit",
                        client_version=version,
                    )
                )
                if answer.error is ErrorCode.none:
                    assert (answer.producer_id, answer.epoch) != instances[1 - number]
                    instances[number] = (answer.producer_id, answer.epoch)
            case "markers" if coordinator.outgoing:
                coordinator.lose_markers() if flag else coordinator.answer_markers()
            case "late":
                coordinator.advance(10_001)
            case "fail over":
                coordinator.fail_over()
    # Once the leaders answer, no transaction stays between its decision and its end (F72).
    coordinator.advance(20_000)
    while coordinator.outgoing:
        coordinator.answer_markers()
    coordinator.advance(20_000)
    while coordinator.outgoing:
        coordinator.answer_markers()
    ended = {one.state for one in coordinator.machine.transactions.values()}
    assert ended <= {S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT}
