"""Where two logs diverge: hand-made cases, then real logs with random leaders."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import NOW, batch, flush, headers, new_log, open_log, raw

from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, ReadResult
from tidelog.model.effects import EpochEnd
from tidelog.model.ids import NO_EPOCH
from tidelog.replication.divergence import diverging, truncation_point
from tidelog.sim.machines.disk import SimDisk

# -- one answer of the leader ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "last_epoch", "offset", "answer"),
    [
        # The leader has the follower's last epoch, up to this offset or further.
        (EpochEnd(5, 10), 5, 10, None),
        (EpochEnd(5, 10), 5, 7, None),
        # The leader has the same epoch, but with fewer records (F02).
        (EpochEnd(5, 8), 5, 10, EpochEnd(5, 8)),
        # The leader lacks the follower's last epoch, so it answers with an earlier epoch (F03).
        (EpochEnd(3, 6), 5, 10, EpochEnd(3, 6)),
        # A follower without records agrees with any leader.
        (EpochEnd(NO_EPOCH, -1), NO_EPOCH, 0, None),
    ],
)
def test_what_the_leader_answers(
    mine: EpochEnd, last_epoch: int, offset: int, answer: EpochEnd | None
) -> None:
    assert diverging(mine, last_epoch, offset, log_start=0) == answer


@pytest.mark.parametrize(
    ("answer", "mine", "cut"),
    [
        (EpochEnd(5, 8), EpochEnd(5, 10), 8),
        # Epoch 3 ends earlier on the follower than on the leader. The follower's records from
        # offset 6 on belong to a later epoch.
        (EpochEnd(3, 9), EpochEnd(3, 6), 6),
        # The follower lacks epoch 3. Its epoch 2 ends at 4, and the leader may have epoch 2.
        (EpochEnd(3, 9), EpochEnd(2, 4), 4),
        # All of the follower's records are of epochs after epoch 3.
        (EpochEnd(3, 9), EpochEnd(NO_EPOCH, -1), 0),
    ],
)
def test_where_the_follower_cuts(answer: EpochEnd, mine: EpochEnd, cut: int) -> None:
    assert truncation_point(answer, mine, log_start=0) == cut


# -- complete logs ---------------------------------------------------------------------------------


def lead(log: PartitionLog, epoch: int, batches: int, size: int = 1) -> None:
    """Begin an epoch, and append batches in it."""
    log.assign_epoch(epoch, log.log_end_offset)
    for _ in range(batches):
        records = batch(size, timestamp=NOW + epoch)
        assert isinstance(log.append_as_leader(records, epoch, NOW), Appended)


def fetch_once(follower: PartitionLog, leader: PartitionLog) -> int | None:
    """Fetch once; return the number of truncated records, or None if nothing is left to fetch."""
    end = follower.log_end_offset
    last = follower.epoch_at(end - 1)
    if last != NO_EPOCH:
        answer = diverging(leader.epoch_end(last), last, end, leader.log_start_offset)
        if answer is not None:
            mine = follower.epoch_end(answer.epoch)
            cut = truncation_point(answer, mine, follower.log_start_offset)
            assert cut < end, "nothing is cut, and the same question follows"
            follower.truncate_to(cut, NOW)
            return end - follower.log_end_offset
    found = leader.read(end, 1, leader.log_end_offset, at_least_one=True)
    assert isinstance(found, ReadResult), found
    if found.slice is None:
        return None
    file, position, length = found.slice
    records = memoryview(bytearray(file.read(position, length)))
    assert isinstance(follower.append_as_follower(records), Appended)
    return 0


def catch_up(follower: PartitionLog, leader: PartitionLog, fetches: int = 10_000) -> int:
    """Fetch until the end; return the number of answers that truncated the log."""
    cuts = 0
    for _ in range(fetches):
        cut = fetch_once(follower, leader)
        if cut is None:
            return cuts
        cuts += cut > 0
    return cuts


def epochs_of(log: PartitionLog) -> list[int]:
    return [header.leader_epoch for header in headers(log)]


def test_f02_the_same_offset_written_twice_is_cut_on_the_one_that_lost() -> None:
    a, b = new_log(), new_log()
    lead(a, 1, 5)
    catch_up(b, a, fetches=3)
    lead(b, 2, 1)  # after both lose power, the one with the shorter log leads

    catch_up(a, b)

    assert epochs_of(a) == [1, 1, 1, 2]
    assert raw(a) == raw(b)


def test_f03_several_leader_changes_are_walked_back_until_the_epochs_match() -> None:
    """Both replicas led in turn and wrote alone, so one answer is not enough."""
    a, b = new_log(), new_log()
    lead(a, 1, 3)
    catch_up(b, a)
    lead(a, 2, 2)
    lead(b, 3, 2)
    lead(a, 4, 2)
    lead(b, 5, 1)

    cuts = catch_up(a, b)

    assert cuts > 1
    assert epochs_of(a) == [1, 1, 1, 3, 3, 5]
    assert raw(a) == raw(b)


def test_f05_the_same_leader_in_a_later_epoch_still_cuts() -> None:
    """In between, the follower led without the leader's knowledge, and wrote its own records."""
    a, b = new_log(), new_log()
    lead(a, 1, 3)
    catch_up(b, a)
    lead(b, 2, 2)
    lead(a, 3, 1)

    catch_up(b, a)

    assert epochs_of(b) == [1, 1, 1, 3]


def test_f06_epochs_without_records_do_not_confuse() -> None:
    a, b = new_log(), new_log()
    lead(a, 1, 3)
    catch_up(b, a)
    lead(a, 2, 0)
    lead(b, 3, 0)
    lead(b, 4, 2)
    lead(a, 5, 0)

    catch_up(b, a)

    assert epochs_of(b) == [1, 1, 1]
    lead(a, 6, 1)
    catch_up(b, a)
    assert epochs_of(b) == [1, 1, 1, 6]


def test_an_empty_leader_takes_everything() -> None:
    """After an unclean election the followers truncate all of their records."""
    empty, full = new_log(), new_log()
    lead(full, 1, 5)
    lead(empty, 2, 0)

    catch_up(full, empty)

    assert full.log_end_offset == 0


def test_what_was_cut_stays_cut_after_power_loss() -> None:
    disk = SimDisk()
    a, b = open_log(disk), new_log()
    lead(a, 1, 5)
    flush(a)
    catch_up(b, a, fetches=3)
    lead(b, 2, 1)
    catch_up(a, b)

    again = open_log(disk, recovery_point=a.recovery_point)

    assert epochs_of(again) == [1, 1, 1, 2]
    assert again.epoch_end(1) == EpochEnd(1, 3)


@dataclass
class Reign:
    leader: int
    batches: int
    size: int
    fetches: tuple[int, int]
    """The number of fetches of each of the two followers before the next leader begins."""


REIGNS = st.lists(
    st.builds(
        Reign,
        leader=st.integers(0, 2),
        batches=st.integers(0, 3),
        size=st.integers(1, 3),
        fetches=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    ),
    max_size=12,
)


def common_prefix(logs: list[PartitionLog]) -> int:
    """The offset up to which all logs have the same batches."""
    end = 0
    for same in zip(*(headers(log) for log in logs), strict=False):
        if len({(header.base_offset, header.leader_epoch) for header in same}) > 1:
            break
        end = same[0].next_offset
    return end


@settings(max_examples=60)
@given(REIGNS, st.integers(0, 2))
def test_after_any_history_followers_end_up_with_their_leaders_log(
    reigns: list[Reign], last: int
) -> None:
    """Three replicas lead in turn; a record that all three hold is never truncated."""
    logs = [new_log(), new_log(), new_log()]
    for epoch, reign in enumerate(reigns):
        leader = logs[reign.leader]
        lead(leader, epoch, reign.batches, reign.size)
        others = [log for log in logs if log is not leader]
        for follower, fetches in zip(others, reign.fetches, strict=True):
            held_by_all = common_prefix(logs)
            catch_up(follower, leader, fetches)
            assert common_prefix(logs) >= held_by_all

    final = len(reigns)
    lead(logs[last], final, 1)
    for follower in logs:
        if follower is not logs[last]:
            cuts = catch_up(follower, logs[last])
            assert cuts <= final
            assert raw(follower) == raw(logs[last])
