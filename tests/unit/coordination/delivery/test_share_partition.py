"""The delivery of records to the members of a share group, on the leader of a partition."""

import pytest

from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch, form_error
from tidelog.coordination.delivery.acquisition import (
    AcquiredRecords,
    Acquirer,
    FetchedBatches,
    OffsetRange,
)
from tidelog.coordination.delivery.share_partition import DeliveryLimits, SharePartition
from tidelog.coordination.delivery.stored_state import StateBatch, StoredState
from tidelog.model.errors import ErrorCode

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
LOCK_MS = 30_000


def partition(
    *batches: tuple[int, int, int, int], start: int = 0, attempts: int = 5, locks: int = 2000
) -> SharePartition:
    stored = StoredState(start, 0, tuple(StateBatch(*batch) for batch in batches))
    return SharePartition(stored, 7, DeliveryLimits(LOCK_MS, attempts, locks))


def fetched(*batches: tuple[int, int], offset: int | None = None) -> FetchedBatches:
    begin = batches[0][0] if offset is None else offset
    return FetchedBatches(begin, tuple(OffsetRange(*batch) for batch in batches))


def member(name: str, most: int = 500, size: int = 500, *, strict: bool = False) -> Acquirer:
    return Acquirer(name, most, size, strict)


def acknowledge(
    share: SharePartition, name: str, first: int, last: int, *types: int, now: int = 0
) -> ErrorCode:
    """Acknowledge and persist."""
    refused = share.acknowledge(name, [AcknowledgementBatch(first, last, types)], 1, now)
    if refused is not None:
        return refused.error
    persist(share)
    return ErrorCode.none


def persist(share: SharePartition, error: ErrorCode = ErrorCode.none) -> list[StateBatch]:
    write = share.next_write()
    if write is None:
        return []
    share.written(error)
    return list(write.batches)


def states(share: SharePartition) -> list[tuple[int, int, int, int]]:
    return [(run.first, run.last, int(run.state), run.delivery_count) for run in share.runs]


def test_a_member_acquires_whole_batches() -> None:
    share = partition()

    assert share.acquire(member("a", most=5), fetched((0, 9), (10, 19)), 0) == [
        AcquiredRecords(0, 9, 1)
    ]
    assert share.next_fetch_offset() == 10
    assert share.acquire(member("b"), fetched((10, 19)), 0) == [AcquiredRecords(10, 19, 1)]


def test_a_strict_limit_leaves_the_rest_of_the_batch_available() -> None:
    share = partition()

    acquired = share.acquire(member("a", most=5, strict=True), fetched((0, 9)), 0)

    assert acquired == [AcquiredRecords(0, 4, 1)]
    assert share.next_fetch_offset() == 5
    assert share.acquire(member("b", most=3, strict=True), fetched((0, 9), offset=5), 0) == [
        AcquiredRecords(5, 7, 1)
    ]


def test_acquired_records_are_split_at_batch_borders() -> None:
    share = partition()

    acquired = share.acquire(member("a", size=10), fetched((0, 5), (6, 11), (12, 30)), 0)

    assert acquired == [AcquiredRecords(0, 11, 1), AcquiredRecords(12, 30, 1)]


def test_accepted_records_move_the_start_when_they_are_persisted() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)

    assert share.acknowledge("a", [AcknowledgementBatch(0, 9, (ACCEPT,))], 8, 0) is None
    assert share.start_offset == 0
    write = share.next_write()

    assert write is not None
    assert write.batches == (StateBatch(0, 9, ACKNOWLEDGED, 1),)
    assert (write.start_offset, write.leader_epoch, write.delivery_complete_count) == (0, 7, 10)
    assert share.written(ErrorCode.none) == [8]
    assert (share.start_offset, share.end_offset, share.runs) == (10, 10, ())


def test_one_write_at_a_time_collects_later_changes() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.acknowledge("a", [AcknowledgementBatch(0, 0, (ACCEPT,))], 1, 0)
    assert share.next_write() is not None
    share.acknowledge("a", [AcknowledgementBatch(1, 1, (ACCEPT,))], 2, 0)
    share.acknowledge("a", [AcknowledgementBatch(2, 2, (REJECT,))], 3, 0)
    assert share.next_write() is None
    assert share.written(ErrorCode.none) == [1]

    second = share.next_write()

    assert second is not None
    assert second.start_offset == 1
    assert second.batches == (StateBatch(1, 1, ACKNOWLEDGED, 1), StateBatch(2, 2, ARCHIVED, 1))
    assert share.written(ErrorCode.none) == [2, 3]


def test_a_refused_write_leaves_the_records_acquired() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.acknowledge("a", [AcknowledgementBatch(0, 9, (ACCEPT,))], 1, 0)

    persist(share, ErrorCode.coordinator_not_available)

    assert states(share) == [(0, 9, ACQUIRED, 1)]
    assert acknowledge(share, "a", 0, 9, ACCEPT) is ErrorCode.none


def test_released_records_are_delivered_again_and_count() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)

    assert acknowledge(share, "a", 3, 5, RELEASE) is ErrorCode.none

    assert share.next_fetch_offset() == 3
    assert share.acquire(member("b"), fetched((0, 9), offset=3), 0) == [AcquiredRecords(3, 5, 2)]


def test_nobody_acquires_a_record_while_its_release_is_written() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.acknowledge("a", [AcknowledgementBatch(0, 9, (RELEASE,))], 1, 0)

    assert share.acquire(member("b"), fetched((0, 9)), 0) == []
    assert share.next_fetch_offset() == 10


def test_each_offset_can_have_its_own_type() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 4)), 0)

    assert acknowledge(share, "a", 0, 4, ACCEPT, REJECT, RELEASE, GAP, RENEW, now=9) is (
        ErrorCode.none
    )

    assert share.start_offset == 2
    assert states(share) == [(2, 2, AVAILABLE, 1), (3, 3, ARCHIVED, 1), (4, 4, ACQUIRED, 1)]
    assert share.next_deadline() == 9 + LOCK_MS


@pytest.mark.parametrize(
    ("name", "first", "last", "error"),
    [
        ("b", 0, 9, ErrorCode.invalid_record_state),
        ("a", 10, 12, ErrorCode.invalid_request),
        ("a", 5, 12, ErrorCode.invalid_request),
    ],
)
def test_only_the_owner_acknowledges_and_only_records_in_flight(
    name: str, first: int, last: int, error: ErrorCode
) -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)

    assert acknowledge(share, name, first, last, ACCEPT) is error
    assert all(run.next_state is None for run in share.runs)


def test_an_error_in_one_batch_undoes_the_others() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 4)), 0)
    share.acquire(member("b"), fetched((5, 9)), 0)

    batches = [AcknowledgementBatch(0, 4, (ACCEPT,)), AcknowledgementBatch(5, 9, (ACCEPT,))]
    refused = share.acknowledge("a", batches, 1, 0)

    assert refused is not None
    assert refused.error is ErrorCode.invalid_record_state
    assert share.next_write() is None
    assert acknowledge(share, "a", 0, 4, ACCEPT) is ErrorCode.none


def test_an_acknowledgement_below_the_start_has_no_effect() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    acknowledge(share, "a", 0, 4, ACCEPT)

    assert acknowledge(share, "b", 0, 4, ACCEPT) is ErrorCode.none


def test_an_acknowledgement_without_records_in_flight_is_refused() -> None:
    assert acknowledge(partition(), "a", 0, 4, ACCEPT) is ErrorCode.invalid_record_state


def test_an_expired_lock_makes_records_available_at_once() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 100)
    assert share.next_deadline() == 100 + LOCK_MS
    assert not share.expire(99 + LOCK_MS)

    assert share.expire(100 + LOCK_MS)

    assert share.acquire(member("b"), fetched((0, 9)), 0) == [AcquiredRecords(0, 9, 2)]
    assert acknowledge(share, "a", 0, 9, ACCEPT) is ErrorCode.invalid_record_state


def test_a_write_of_an_expiry_does_not_complete_a_later_acknowledgement() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.expire(LOCK_MS)
    assert share.next_write() is not None
    share.acquire(member("b"), fetched((0, 9)), LOCK_MS)
    share.acknowledge("b", [AcknowledgementBatch(0, 9, (ACCEPT,))], 2, LOCK_MS)

    assert share.written(ErrorCode.none) == []

    assert share.start_offset == 0
    assert persist(share) == [StateBatch(0, 9, ACKNOWLEDGED, 2)]
    assert share.start_offset == 10


def test_a_lock_that_expires_during_a_failed_write_is_released_after_it() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.acknowledge("a", [AcknowledgementBatch(0, 9, (ACCEPT,))], 1, 0)
    share.next_write()
    assert not share.expire(LOCK_MS)

    share.written(ErrorCode.coordinator_not_available)

    assert share.expire(LOCK_MS)
    assert states(share) == [(0, 9, AVAILABLE, 1)]


def test_a_record_is_archived_after_its_last_attempt() -> None:
    share = partition(attempts=2)
    for now in (0, LOCK_MS):
        assert share.acquire(member("a"), fetched((0, 0)), now) != []
        share.expire(now + LOCK_MS)
        persist(share)

    assert share.start_offset == 1


def test_suspect_records_are_delivered_in_smaller_portions_and_at_last_alone() -> None:
    share = partition((0, 99, AVAILABLE, 3), attempts=6)
    sizes = []
    for _ in range(2):
        acquired = share.acquire(member("a"), fetched((0, 99)), 0)
        sizes.append(sum(part.size for part in acquired))
        share.expire(LOCK_MS)
    assert sizes == [50, 25]

    last_attempt = partition((0, 99, AVAILABLE, 5), attempts=6)

    assert last_attempt.acquire(member("a"), fetched((0, 99)), 0) == [AcquiredRecords(0, 0, 6)]


def test_the_end_of_a_session_does_not_count_as_a_delivery() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)

    share.release("a", 4)

    assert persist(share) == [StateBatch(0, 9, AVAILABLE, 0)]
    assert share.acquire(member("b"), fetched((0, 9)), 0) == [AcquiredRecords(0, 9, 1)]


def test_the_number_of_locks_is_limited() -> None:
    share = partition(locks=10)
    share.acquire(member("a"), fetched((0, 9)), 0)
    assert not share.can_acquire()
    assert share.acquire(member("b"), fetched((10, 19)), 0) == []

    acknowledge(share, "a", 4, 4, RELEASE)

    assert share.can_acquire()
    assert share.acquire(member("b"), fetched((0, 19), offset=4), 0) == [AcquiredRecords(4, 4, 2)]


def test_records_that_compaction_removed_are_archived() -> None:
    share = partition((0, 9, AVAILABLE, 1))

    acquired = share.acquire(member("a"), fetched((5, 9), (20, 29), offset=0), 0)

    assert acquired == [AcquiredRecords(5, 9, 2), AcquiredRecords(20, 29, 1)]
    assert share.start_offset == 5
    assert acknowledge(share, "a", 5, 29, ACCEPT) is ErrorCode.none
    assert share.start_offset == 30


def test_records_of_aborted_transactions_are_archived() -> None:
    share = partition()
    batches = FetchedBatches(0, (OffsetRange(0, 9), OffsetRange(10, 19)), (OffsetRange(0, 9),))

    assert share.acquire(member("a"), batches, 0) == [AcquiredRecords(10, 19, 1)]
    assert share.start_offset == 10


def test_a_new_leader_delivers_what_was_not_settled() -> None:
    share = partition((10, 14, ACKNOWLEDGED, 1), (20, 24, AVAILABLE, 2), start=10)

    assert share.start_offset == 15
    assert states(share) == [(15, 19, AVAILABLE, 0), (20, 24, AVAILABLE, 2)]
    assert share.next_fetch_offset() == 15


def test_the_start_follows_the_start_of_the_log() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)

    share.log_start_moved(5)
    assert (share.start_offset, share.end_offset) == (5, 10)
    assert acknowledge(share, "a", 0, 9, ACCEPT) is ErrorCode.none
    assert share.start_offset == 10

    share.log_start_moved(40)
    assert (share.start_offset, share.end_offset) == (40, 40)


def test_a_leader_that_steps_down_returns_the_waiting_requests() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.acknowledge("a", [AcknowledgementBatch(0, 4, (ACCEPT,))], 1, 0)
    share.next_write()
    share.acknowledge("a", [AcknowledgementBatch(5, 9, (ACCEPT,))], 2, 0)

    assert share.is_waiting(2)
    assert share.abandon() == [1, 2]
    assert not share.is_waiting(2)


@pytest.mark.parametrize(
    "batches",
    [
        [(5, 4, (1,))],
        [(0, 4, (1,)), (3, 5, (1,))],
        [(0, 4, ())],
        [(0, 4, (1, 1))],
        [(0, 4, (5,))],
        [(0, 4, (-1,))],
    ],
)
def test_malformed_acknowledgements_are_refused(
    batches: list[tuple[int, int, tuple[int, ...]]],
) -> None:
    assert form_error([AcknowledgementBatch(*batch) for batch in batches], may_renew=True)


def test_renewal_is_a_type_only_where_the_request_announces_it() -> None:
    batches = [AcknowledgementBatch(0, 4, (RENEW,))]

    assert form_error(batches, may_renew=False)
    assert form_error(batches, may_renew=True) is None


def test_a_group_may_forbid_the_renewal_of_locks() -> None:
    share = partition()
    share.acquire(member("a"), fetched((0, 9)), 0)
    share.limits.may_renew = False

    assert acknowledge(share, "a", 0, 9, RENEW) is ErrorCode.invalid_record_state
    assert acknowledge(share, "a", 0, 9, ACCEPT) is ErrorCode.none
