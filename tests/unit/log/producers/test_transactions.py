"""Transactions in a log: the last stable offset and the aborted transactions."""

import pytest
from tests.unit.log.support import DIRECTORY, NOW, SMALL, append, batch, marker, new_log, open_log

from tidelog.log.indexes.transaction_index import TransactionIndex
from tidelog.log.partition import PartitionLog
from tidelog.log.producers.markers import EndTransactionMarker, marker_batch
from tidelog.log.results import AbortedTxn, Appended, AppendOrigin, AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.disk import SimDisk


class Producer:
    """A transactional producer that numbers its own batches."""

    def __init__(self, log: PartitionLog, producer: int, epoch: int = 0) -> None:
        self.log = log
        self.id = producer
        self.epoch = epoch
        self.sequence = 0

    def write(self, count: int = 1, size: int = 20) -> int:
        records = batch(
            count,
            size=size,
            producer=self.id,
            epoch=self.epoch,
            sequence=self.sequence,
            transactional=True,
        )
        self.sequence += count
        self.log.transaction_verified(self.id, self.log.marker_offset(self.id))
        return append(self.log, records).base_offset

    def end(self, *, abort: bool, coordinator_epoch: int = 0) -> Appended | AppendRefused:
        records = marker(self.id, self.epoch, abort=abort, coordinator_epoch=coordinator_epoch)
        return self.log.append_as_leader(records, 1, NOW, AppendOrigin.COORDINATOR)


def test_an_open_transaction_holds_the_last_stable_offset() -> None:
    log = new_log()
    append(log)
    producer = Producer(log, 1)
    first = producer.write()
    producer.write()
    append(log)
    assert log.last_stable_offset(log.log_end_offset) == first

    producer.end(abort=False)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_a_marker_above_the_high_watermark_may_still_be_lost() -> None:
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    producer.end(abort=False)
    assert log.last_stable_offset(1) == 0
    assert log.last_stable_offset(2) == 2


def test_the_oldest_of_several_transactions_counts() -> None:
    log = new_log()
    one, two = Producer(log, 1), Producer(log, 2)
    one.write()
    two.write()
    assert log.last_stable_offset(2) == 0
    one.end(abort=False)
    assert log.last_stable_offset(3) == 1
    two.end(abort=True)
    assert log.last_stable_offset(4) == 4


def test_aborted_transactions_are_found_by_the_range_they_overlap() -> None:
    log = new_log()
    one, two = Producer(log, 1), Producer(log, 2)
    one.write(3)  # offsets 0 to 2
    two.write(2)  # offsets 3 to 4
    one.end(abort=True)  # offset 5; the transaction of producer two is open from 3
    two.end(abort=False)  # offset 6
    one.write()  # offset 7
    one.end(abort=True)  # offset 8
    first, second = AbortedTxn(1, 0, 5, 3), AbortedTxn(1, 7, 8, 9)
    assert log.aborted_transactions(0, 9) == (first, second)
    assert log.aborted_transactions(0, 3) == (first,)
    assert log.aborted_transactions(6, 7) == ()
    assert log.aborted_transactions(8, 9) == (second,)


def test_a_marker_without_records_changes_nothing() -> None:
    log = new_log()
    assert Producer(log, 1).end(abort=True) == Appended(0, 0, -1)
    assert log.aborted_transactions(0, 1) == ()
    assert log.last_stable_offset(1) == 1


def test_a_non_transactional_write_inside_a_transaction_is_refused() -> None:
    log = new_log()
    Producer(log, 1).write()
    result = log.append_as_leader(batch(producer=1, epoch=0, sequence=1), 1, NOW)
    assert isinstance(result, AppendRefused)
    assert result.error is ErrorCode.invalid_txn_state


def test_a_marker_of_an_old_producer_epoch_is_refused() -> None:
    log = new_log()
    producer = Producer(log, 1, epoch=5)
    producer.write()
    producer.epoch = 4
    refused = producer.end(abort=True)
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.invalid_producer_epoch


def test_a_marker_of_an_old_coordinator_is_refused() -> None:
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    producer.end(abort=False, coordinator_epoch=9)
    refused = producer.end(abort=False, coordinator_epoch=8)
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.transaction_coordinator_fenced


def test_an_epoch_bumped_by_a_marker_fences_the_producer() -> None:
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    log.append_as_leader(marker(1, 1, abort=True), 1, NOW, AppendOrigin.COORDINATOR)
    result = log.append_as_leader(batch(producer=1, epoch=0, sequence=1), 1, NOW)
    assert isinstance(result, AppendRefused)
    assert result.error is ErrorCode.invalid_producer_epoch


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    one, two = Producer(log, 1), Producer(log, 2)
    one.write()
    for _ in range(30):
        two.write(size=200)  # rolls several segments
    one.end(abort=True)
    before = log.aborted_transactions(0, log.log_end_offset)
    assert len(before) == 1
    if clean:
        log.close()

    log = open_log(disk, clean=clean)
    assert log.aborted_transactions(0, log.log_end_offset) == before
    assert log.last_stable_offset(log.log_end_offset) == 1
    two.log = log
    two.end(abort=False)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_truncation_reopens_a_transaction_whose_marker_it_cuts() -> None:
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    producer.end(abort=True)
    log.truncate_to(1, NOW)
    assert log.aborted_transactions(0, 5) == ()
    assert log.last_stable_offset(1) == 0
    producer.end(abort=True)
    assert log.aborted_transactions(0, 5) == (AbortedTxn(1, 0, 1, 2),)


def test_a_follower_learns_of_transactions_from_the_batches() -> None:
    leader, follower = new_log(), new_log()
    producer = Producer(leader, 1)
    producer.write(2)
    producer.end(abort=True)
    producer.write()
    found = leader.read(0, 1 << 20, 4, at_least_one=True)
    assert not isinstance(found, ErrorCode)
    assert found.slice is not None
    chunk = found.slice.file.read(found.slice.position, found.slice.length)
    follower.append_as_follower(memoryview(chunk))
    assert follower.aborted_transactions(0, 4) == leader.aborted_transactions(0, 4)
    assert follower.last_stable_offset(4) == leader.last_stable_offset(4) == 3


def test_the_transaction_index_is_kafkas() -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    path = f"{DIRECTORY}/{0:020d}.txnindex"
    index = TransactionIndex(disk, path, 0)
    assert not disk.exists(path)
    index.add(AbortedTxn(7, 1, 4, 5))
    assert disk.read_file(path) == (bytes(2) + b"".join(n.to_bytes(8, "big") for n in (7, 1, 4, 5)))
    assert list(TransactionIndex(disk, path, 0)) == [AbortedTxn(7, 1, 4, 5)]


def test_entries_of_a_transaction_index_that_cannot_be_right_are_not_used() -> None:
    disk = SimDisk()
    index = TransactionIndex(disk, "a.txnindex", 0)
    index.add(AbortedTxn(7, 1, 4, 5))
    index.add(AbortedTxn(7, 6, 8, 9))
    assert len(list(TransactionIndex(disk, "a.txnindex", 0))) == 2
    assert list(TransactionIndex(disk, "a.txnindex", 5)) == []
    disk.open("a.txnindex").truncate(40)
    assert list(TransactionIndex(disk, "a.txnindex", 0)) == [AbortedTxn(7, 1, 4, 5)]


def test_an_idle_producer_with_an_open_transaction_is_kept() -> None:
    log = new_log()
    Producer(log, 1).write()
    log.apply_retention(NOW + 10 * SMALL.producer_id_expiration_ms, 0)
    assert log.last_stable_offset(1) == 0


def write_marker(
    log: PartitionLog, producer: int, epoch: int, origin: AppendOrigin
) -> Appended | AppendRefused:
    end = EndTransactionMarker(is_abort=False, coordinator_epoch=3)
    batch = marker_batch(producer, epoch, end, NOW)
    return log.append_as_leader(memoryview(bytearray(batch)), 1, NOW, origin)


def test_f46_a_late_marker_does_not_end_the_next_transaction() -> None:
    log = new_log()
    first = Producer(log, 1, epoch=0)
    first.write()
    assert isinstance(write_marker(log, 1, 1, AppendOrigin.EPOCH_MARKER), Appended)
    # The same marker again, before the next transaction has begun here, does no harm.
    assert isinstance(write_marker(log, 1, 1, AppendOrigin.EPOCH_MARKER), Appended)
    begun = Producer(log, 1, epoch=1).write()
    late = write_marker(log, 1, 1, AppendOrigin.EPOCH_MARKER)
    assert isinstance(late, AppendRefused)
    assert late.error is ErrorCode.invalid_producer_epoch
    assert log.last_stable_offset(log.log_end_offset) == begun
    assert log.has_open_transaction(1, 1)

    assert isinstance(write_marker(log, 1, 2, AppendOrigin.EPOCH_MARKER), Appended)
    assert not log.has_open_transaction(1, 1)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_a_marker_of_version_1_has_the_epoch_of_its_transaction() -> None:
    log = new_log()
    Producer(log, 1, epoch=4).write()
    assert log.marker_offset(1) == -1
    written = write_marker(log, 1, 4, AppendOrigin.COORDINATOR)
    assert isinstance(written, Appended)
    assert log.marker_offset(1) == written.last_offset
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_f75_a_coordinator_that_was_replaced_cannot_write_a_marker() -> None:
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    producer.end(abort=True, coordinator_epoch=7)
    producer.write()
    for origin in (AppendOrigin.COORDINATOR, AppendOrigin.EPOCH_MARKER):
        refused = write_marker(log, 1, 1, origin)
        assert isinstance(refused, AppendRefused)
        assert refused.error is ErrorCode.transaction_coordinator_fenced


def test_f72_a_batch_that_was_verified_before_a_marker_is_refused_after_it() -> None:
    """With transaction version 1, the marker and the batch have the same epoch."""
    log = new_log()
    producer = Producer(log, 1)
    producer.write()
    log.transaction_verified(producer.id, log.marker_offset(producer.id))
    producer.end(abort=False)

    late = batch(1, producer=1, epoch=producer.epoch, sequence=1, transactional=True)
    refused = log.append_as_leader(late, 1, NOW)
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.invalid_txn_state
    offsets = log.append_as_leader(late, 1, NOW, AppendOrigin.COORDINATOR)
    assert isinstance(offsets, AppendRefused)
    assert offsets.error is ErrorCode.invalid_txn_state
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset

    producer.write()
    assert log.has_open_transaction(producer.id, producer.epoch)
