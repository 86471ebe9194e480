"""What a cleaner with a wrong rule does, which shows that the checks would notice it."""

from contextlib import suppress

import pytest
from tests.unit.log.cleaner.compacting import (
    DAY,
    batches,
    begin,
    clean,
    committed,
    end_transaction,
    opened,
    put,
    seal,
    steps,
    uncommitted,
    values,
    write,
)
from tests.unit.log.support import DIRECTORY, NOW

from tidelog.protocol.records.records import Record, UnreadableRecords
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.rules import TODAYS, Replacement, Rules, applied_rules

EARLY_TOMBSTONES = Rules(
    "early-tombstones",
    (Replacement("tidelog.log.cleaner.filtering:is_expired", lambda horizon, now: True),),
)
NO_MARKERS = Rules(
    "no-markers",
    (
        Replacement(
            "tidelog.log.cleaner.transactions:CleanedTransactions.is_marker_discardable",
            lambda self, header, batch: True,
        ),
    ),
)
NO_SYNC = Rules(
    "no-sync",
    (Replacement("tidelog.log.cleaner.writing:sync_files", lambda files: None),),
)


@pytest.mark.parametrize(("rules", "hears_of_it"), [(TODAYS, True), (EARLY_TOMBSTONES, False)])
def test_f78_a_slow_reader_hears_of_a_deletion(rules: Rules, hears_of_it: bool) -> None:
    _, log = opened(SimDisk())
    put(log, "key", "value")
    state = values(uncommitted(log))
    read_to = log.log_end_offset
    put(log, "key", None)
    seal(log)
    with applied_rules(rules):
        clean(log, 0, NOW + DAY // 2)
    for record in uncommitted(log):
        if record.offset >= read_to and record.key == b"key" and record.value is None:
            state.pop("key")
    assert (state == {}) is hears_of_it


@pytest.mark.parametrize(("rules", "is_right"), [(TODAYS, True), (NO_MARKERS, False)])
def test_f80_committed_records_stay_readable(rules: Rules, is_right: bool) -> None:
    disk = SimDisk()
    directory, log = opened(disk)
    write(log, [Record(b"key", b"value", NOW)], producer=7, transactional=True)
    end_transaction(log, 7, 0, abort=False)
    put(log, "other", "value")
    seal(log)
    with applied_rules(rules):
        cleaned_to = clean(log, 0, NOW)
        seal(log)
        clean(log, cleaned_to, NOW + 2 * DAY)
    directory.close({}, 1)
    for name in disk.list(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    disk.kill()
    _, again = opened(disk)
    # Without its marker, the transaction stays open for ever, and hides all later records.
    assert (values(committed(again)) == {"key": "value", "other": "value"}) is is_right
    assert any(header.is_control for header, _ in batches(again)) is is_right


@pytest.mark.parametrize(("rules", "loses"), [(TODAYS, False), (NO_SYNC, True)])
def test_f79_power_loss_around_a_swap_leaves_one_whole_version(rules: Rules, loses: bool) -> None:
    losses = 0
    for seed in range(30):
        disk = SimDisk()
        directory, log = opened(disk)
        for number in range(40):
            put(log, f"key {number % 3}", f"value {number}")
        seal(log)
        directory.write_checkpoints({}, durable=True)
        with applied_rules(rules):
            for number, _ in enumerate(steps(begin(log))):
                if number == 2 + seed % 8:
                    break
        disk.crash(SeededDice(seed))
        _, again = opened(disk)
        found: dict[str, str] = {}
        with suppress(AssertionError, UnreadableRecords):  # a batch cannot be read
            found = values(uncommitted(again))
        losses += found != {f"key {n % 3}": f"value {n}" for n in (37, 38, 39)}
    assert (losses > 0) is loses
