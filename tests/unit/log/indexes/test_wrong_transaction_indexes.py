"""A transaction index that does not match the batches is found, rebuilt and reported (F55)."""

from collections.abc import Callable

import pytest
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    append,
    batch,
    flush,
    marker,
    open_log,
    run,
    verify,
)

from tidelog.log.partition import PartitionLog
from tidelog.log.results import AbortedTxn, Appended, AppendOrigin
from tidelog.sim.machines.disk import SimDisk

TRANSACTIONS = 60
SEALED, ACTIVE = 1, -1


def abort(log: PartitionLog, producer: int) -> None:
    """Write and abort a transaction of two batches."""
    for sequence in (0, 1):
        records = batch(producer=producer, epoch=0, sequence=sequence, transactional=True)
        append(log, records)
    end = marker(producer, 0, abort=True)
    assert isinstance(log.append_as_leader(end, 1, NOW, AppendOrigin.COORDINATOR), Appended)


def stopped() -> tuple[SimDisk, int, tuple[AbortedTxn, ...]]:
    """Write and close a log in several segments, with one open and many aborted transactions.

    Returns its disk, its end offset and its aborted transactions.
    """
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(producer=999, epoch=0, sequence=0, transactional=True))
    for number in range(TRANSACTIONS):
        abort(log, number)
    flush(log)
    log.close()
    return disk, log.log_end_offset, log.aborted_transactions(0, log.log_end_offset)


def indexes(disk: SimDisk) -> list[str]:
    return [f"{DIRECTORY}/{one}" for one in disk.list(DIRECTORY) if one.endswith(".txnindex")]


DAMAGES: dict[str, Callable[[SimDisk, str], None]] = {
    "deleted": lambda disk, path: disk.remove(path),
    "emptied": lambda disk, path: disk.rot(path, b""),
    "cut": lambda disk, path: disk.rot(path, disk.read_file(path)[:40]),
    "a flipped offset": lambda disk, path: disk.flip_bit(path, 8 * 25 + 7),
    "a producer": lambda disk, path: disk.flip_bit(path, 8 * 9),
    "a late marker": lambda disk, path: disk.flip_bit(path, 8 * 20),
    "garbage": lambda disk, path: disk.rot(path, b"\xff" * 100),
    "of another segment": lambda disk, path: disk.rot(path, disk.read_file(indexes(disk)[0])),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", [SEALED, ACTIVE], ids=["sealed", "active"])
def test_f55_a_wrong_transaction_index_is_rebuilt_and_reported(place: int, damage: str) -> None:
    disk, log_end, aborted = stopped()
    path = sorted(indexes(disk))[place]
    before = disk.read_file(path)
    DAMAGES[damage](disk, path)
    log = open_log(disk, clean=True, recovery_point=log_end)
    assert log.aborted_transactions(0, log_end) != aborted
    verify(log)

    assert log.aborted_transactions(0, log_end) == aborted
    assert disk.read_file(path) == before
    base = int(path.removeprefix(f"{DIRECTORY}/").removesuffix(".txnindex"))
    assert log.take_notes() == [
        f"{DIRECTORY}: segment {base}: its transaction index was wrong and "
        "was rebuilt from its batches"
    ]


@pytest.mark.parametrize("damage", DAMAGES)
def test_f55_a_transaction_is_aborted_behind_a_wrong_index(damage: str) -> None:
    disk, log_end, aborted = stopped()
    path = sorted(indexes(disk))[ACTIVE]
    DAMAGES[damage](disk, path)
    log = open_log(disk, clean=True, recovery_point=log_end)
    abort(log, 500)
    new = AbortedTxn(500, log_end, log_end + 2, 0)
    verify(log)

    assert log.aborted_transactions(0, log.log_end_offset) == (*aborted, new)
    log.close()
    again = open_log(disk, clean=True, recovery_point=log.log_end_offset)
    verify(again)
    assert again.take_notes() == []
    assert again.aborted_transactions(0, log.log_end_offset) == (*aborted, new)


def test_f55_a_sound_transaction_index_is_left_as_it_is() -> None:
    disk, log_end, aborted = stopped()
    log = open_log(disk, clean=True, recovery_point=log_end)
    verify(log)
    assert log.take_notes() == []
    assert log.aborted_transactions(0, log_end) == aborted


def test_a_log_that_begins_inside_a_transaction_is_checked_from_its_snapshot() -> None:
    disk, log_end, aborted = stopped()
    paths = sorted(indexes(disk))
    first = int(paths[1].removeprefix(f"{DIRECTORY}/").removesuffix(".txnindex"))
    for name in disk.list(DIRECTORY):
        if name.startswith(f"{0:020d}."):
            disk.remove(f"{DIRECTORY}/{name}")
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    disk.rot(paths[2], b"")
    log = open_log(disk, clean=True, recovery_point=log_end, log_start=first)
    verify(log)

    kept = tuple(one for one in aborted if one.last_offset >= first)
    assert log.aborted_transactions(first, log_end) == kept
    [note] = log.take_notes()
    assert "transaction index was wrong" in note


def test_a_log_that_is_cut_while_it_is_verified_keeps_what_it_has() -> None:
    disk, log_end, _ = stopped()
    log = open_log(disk, clean=True, recovery_point=log_end)
    verification = log.begin_verification()
    assert verification is not None
    job = verification.next_slice()
    log.truncate_to(log_end - 30, 0)
    while log.log_end_offset < log_end:
        append(log)
    while job is not None:
        verification.take(run(job))
        job = verification.next_slice()
    assert all(
        one.last_offset < log_end - 30 for one in log.aborted_transactions(0, log.log_end_offset)
    )
    assert log.take_notes() == []
