"""The share coordinator: epochs, updates and snapshots, failover."""

from uuid import UUID

import pytest
from tests.unit.coordination.share_state.share_client import TOPIC, ShareStateClient, image_of

from tidelog.coordination.delivery.acknowledgements import AcknowledgementBatch
from tidelog.coordination.delivery.acquisition import Acquirer, FetchedBatches, OffsetRange
from tidelog.coordination.delivery.share_partition import DeliveryLimits, SharePartition
from tidelog.coordination.delivery.stored_state import StateBatch, StateWrite, StoredState
from tidelog.coordination.share_state.share_records import (
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
    decode_record,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_TOPIC_ID

ACKNOWLEDGED, ACCEPT, LOCK_MS = 2, 1, 30_000


@pytest.fixture
def shares() -> ShareStateClient:
    return ShareStateClient()


def change(start: int, *batches: tuple[int, int, int, int], leader: int = 1) -> StateWrite:
    return StateWrite(start, 0, leader, len(batches), tuple(StateBatch(*b) for b in batches))


def last_record(shares: ShareStateClient) -> ShareStateRecord:
    record = decode_record(*shares.log.records[-1])
    assert record is not None
    return record


def test_state_is_initialized_read_written_and_deleted(shares: ShareStateClient) -> None:
    assert shares.read(1) is ErrorCode.invalid_request
    assert shares.write(change(0)) is ErrorCode.invalid_request
    assert shares.summary() == (0, 0, -1, -1)

    assert shares.initialize(-1) is ErrorCode.none
    assert shares.read(1) == StoredState(-1, 0)
    assert shares.write(change(5, (5, 9, ACKNOWLEDGED, 1))) is ErrorCode.none
    assert shares.read(1) == StoredState(5, 0, (StateBatch(5, 9, ACKNOWLEDGED, 1),))
    assert shares.summary() == (0, 1, 5, 1)

    assert shares.delete() is ErrorCode.none
    assert shares.delete() is ErrorCode.none
    assert shares.read(1) is ErrorCode.invalid_request


def test_repeated_initialization_changes_nothing(shares: ShareStateClient) -> None:
    shares.initialize(5)
    records = len(shares.log.records)

    assert shares.initialize(5) is ErrorCode.none

    assert len(shares.log.records) == records


def test_a_reset_fences_the_writes_of_the_old_state_epoch(shares: ShareStateClient) -> None:
    shares.initialize(-1)
    shares.read(1)
    shares.write(change(50, (50, 59, ACKNOWLEDGED, 1)))

    assert shares.initialize(10, state_epoch=3) is ErrorCode.none

    assert shares.write(change(60)) is ErrorCode.fenced_state_epoch
    assert shares.initialize(0, state_epoch=2) is ErrorCode.fenced_state_epoch
    assert shares.read(2) == StoredState(10, 3)
    assert shares.summary() == (3, 2, 10, 0)


def test_a_late_write_does_not_move_the_start_back(shares: ShareStateClient) -> None:
    shares.initialize(0)
    shares.write(change(20))

    shares.write(change(10, (10, 30, ACKNOWLEDGED, 1)))

    assert shares.read(1) == StoredState(20, 0, (StateBatch(20, 30, ACKNOWLEDGED, 1),))


def test_a_snapshot_follows_after_some_updates(shares: ShareStateClient) -> None:
    shares.initialize(0)
    kinds = []
    for start in range(5):
        shares.write(change(start, (start, start, ACKNOWLEDGED, 1)))
        kinds.append(type(last_record(shares).value))

    assert kinds == [ShareUpdate, ShareUpdate, ShareUpdate, ShareSnapshot, ShareUpdate]


def test_a_new_coordinator_has_the_same_state(shares: ShareStateClient) -> None:
    shares.initialize(0)
    for start in range(7):
        shares.write(change(start, (start + 1, start + 2, ACKNOWLEDGED, 1)))
    before = shares.read(4)

    shares.fail_over()

    assert shares.read(4) == before
    assert shares.write(change(9, leader=3)) is ErrorCode.fenced_leader_epoch


def test_share_partitions_without_writes_get_new_snapshots(shares: ShareStateClient) -> None:
    shares.initialize(0)
    shares.initialize(0, partition=1)
    assert shares.machine.states.first_needed_offset() == 0

    shares.wait(1_000)

    assert shares.machine.states.first_needed_offset() == 1
    assert last_record(shares).key.partition == 0


def test_the_state_of_a_deleted_topic_is_deleted(shares: ShareStateClient) -> None:
    shares.initialize(0)

    shares.change_image(image_of(UUID(int=8)))

    assert last_record(shares).value is None
    assert not len(shares.machine.states)


def test_the_state_of_a_topic_that_was_deleted_meanwhile_is_deleted(
    shares: ShareStateClient,
) -> None:
    shares.initialize(0)
    shares.image = image_of(UUID(int=8))

    shares.fail_over()

    assert last_record(shares).value is None


def test_records_before_the_oldest_committed_snapshot_are_not_needed(
    shares: ShareStateClient,
) -> None:
    shares.initialize(0)
    for start in range(4):
        shares.write(change(start))
    shares.wait(700)
    assert shares.machine.first_needed == shares.machine.states.first_needed_offset() == 4

    shares.write_uncommitted(change(5), times=4)
    shares.now += 700
    shares.shard.tick(shares.at)
    assert shares.machine.states.first_needed_offset() == 8
    assert shares.machine.first_needed == 4, "a failover may take the new snapshot back"


@pytest.mark.parametrize(
    ("topic", "partition", "error"),
    [
        (UUID(int=99), 0, ErrorCode.unknown_topic_or_partition),
        (TOPIC, 5, ErrorCode.unknown_topic_or_partition),
        (TOPIC, -1, ErrorCode.invalid_request),
        (None, 0, ErrorCode.invalid_request),
        (ZERO_TOPIC_ID, 0, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_unknown_share_partitions_are_refused(
    shares: ShareStateClient, topic: UUID | None, partition: int, error: ErrorCode
) -> None:
    assert shares.initialize(0, topic=topic, partition=partition) is error


def test_a_write_that_the_log_refuses_changes_nothing(shares: ShareStateClient) -> None:
    shares.initialize(0)
    shares.log.refuses_with = ErrorCode.not_enough_replicas

    assert shares.write(change(5)) is ErrorCode.coordinator_not_available

    assert shares.summary()[2] == 0


def lead(shares: ShareStateClient, epoch: int) -> SharePartition:
    stored = shares.read(epoch)
    assert isinstance(stored, StoredState)
    return SharePartition(stored, epoch, DeliveryLimits(LOCK_MS, 5, 2_000))


def acquire(share: SharePartition, member: str) -> list[tuple[int, int, int]]:
    found = FetchedBatches(0, (OffsetRange(0, 9),))
    return [tuple(part) for part in share.acquire(Acquirer(member, 500, 500), found, 0)]


def accept(shares: ShareStateClient, share: SharePartition, member: str) -> ErrorCode:
    refused = share.acknowledge(member, [AcknowledgementBatch(0, 9, (ACCEPT,))], 1, 0)
    if refused is not None:
        return refused.error
    write = share.next_write()
    assert write is not None
    error = shares.write(write)
    share.written(error)
    return error


def test_f70_only_one_of_two_leaders_can_settle_a_record(shares: ShareStateClient) -> None:
    shares.initialize(0)
    old = lead(shares, 1)
    assert acquire(old, "a") == [(0, 9, 1)]

    # The old leader is cut off and still holds the lock of member a.
    new = lead(shares, 2)
    assert acquire(new, "b") == [(0, 9, 1)]

    assert accept(shares, old, "a") is ErrorCode.fenced_leader_epoch
    assert accept(shares, new, "b") is ErrorCode.none
    assert lead(shares, 3).start_offset == 10


def test_f70_an_accepted_record_is_not_delivered_after_a_failover(
    shares: ShareStateClient,
) -> None:
    shares.initialize(0)
    old = lead(shares, 1)
    acquire(old, "a")
    assert accept(shares, old, "a") is ErrorCode.none

    shares.fail_over()

    new = lead(shares, 2)
    assert acquire(new, "b") == []
    assert new.start_offset == 10
