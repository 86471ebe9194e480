"""A bad partition is retried separately. Other partitions of its leader are still fetched (F62)."""

import pytest
from tests.unit.log.support import SMALL
from tests.unit.node.following import Following, fetched, records

from tidelog.log.partition import PartitionLog
from tidelog.replication.isr.follower import LONGEST_RETRY_MS, RETRY_MS


def corrupt(base_offset: int, epoch: int) -> memoryview:
    """A batch with a wrong checksum."""
    batch = bytearray(records(base_offset, epoch))
    batch[-1] ^= 1
    return memoryview(batch)


def follow(follower: Following, partitions: int) -> list[PartitionLog]:
    """Follow this many partitions, all in one session."""
    replicas = [follower.replica(partition) for partition in range(partitions)]
    for replica in replicas:
        follower.fetcher.follow(replica, 3)
    follower.answer()
    follower.answer()
    return [replica.log for replica in replicas]


def test_f62_a_corrupt_answer_for_one_partition_does_not_hold_up_the_others() -> None:
    follower = Following()
    logs = follow(follower, 3)

    follower.answer(
        fetched(0, records=records(0, 3)),
        fetched(1, records=corrupt(0, 3)),
        fetched(2, records=records(0, 3)),
    )

    assert [log.log_end_offset for log in logs] == [1, 0, 1]
    assert sorted(follower.asked_for()) == [0, 2]
    assert follower.forgotten() == [1]


def test_f62_a_partition_that_fails_again_and_again_waits_longer_each_time() -> None:
    follower = Following()
    follow(follower, 1)
    waits = []
    for _ in range(10):
        follower.answer(fetched(0, records=corrupt(0, 3)))
        began = follower.clock.now
        while follower.asked is None:
            follower.advance(RETRY_MS)
        waits.append(follower.clock.now - began)

    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (RETRY_MS, LONGEST_RETRY_MS)


def test_f62_a_partition_that_is_sound_again_is_followed_as_before() -> None:
    follower = Following()
    [log] = follow(follower, 1)
    for _ in range(4):
        follower.answer(fetched(0, records=corrupt(0, 3)))
        follower.advance(LONGEST_RETRY_MS)
    follower.answer(fetched(0, records=records(0, 3)))
    assert log.log_end_offset == 1

    follower.answer(fetched(0, records=corrupt(1, 3)))
    follower.advance(RETRY_MS)

    assert list(follower.asked_for()) == [0]


def test_f62_a_log_that_refuses_to_be_written_to_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower = Following()
    logs = follow(follower, 3)
    append = PartitionLog.append_as_follower

    def fail(log: PartitionLog, batches: memoryview, newest_epoch: int = 0) -> object:
        if log is logs[0]:
            raise OSError(5, "the disk is ill")
        if log is logs[1]:
            raise ValueError("a bug")
        return append(log, batches)

    monkeypatch.setattr(PartitionLog, "append_as_follower", fail)
    follower.answer(*(fetched(one, records=records(0, 3)) for one in range(3)))

    assert [log.log_end_offset for log in logs] == [0, 0, 1]
    assert [str(failure) for failure in follower.failures] == ["[Errno 5] the disk is ill"]
    assert list(follower.asked_for()) == [2]


def answer_unless(follower: Following, bad: set[int], *, loses: bool) -> set[int]:
    """Give the leader's next answer, or fail the fetch if a bad partition is in the session."""
    asked = follower.asked
    assert asked is not None
    if asked.session_epoch == 0:
        follower.session = set()  # type: ignore[attr-defined]
    session: set[int] = follower.session  # type: ignore[attr-defined]
    session -= set(follower.forgotten())
    session |= set(follower.asked_for())
    if not session & bad:
        follower.answer()
        return session
    if loses:
        follower.lose_connection()
    else:
        follower.answer_garbage()
    return set()


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("bad", [{0}, {6}, {3, 4}, {0, 2, 5}])
def test_f62_partitions_at_which_whole_answers_fail_are_found_and_left_out(
    bad: set[int], loses: bool
) -> None:
    """The leader closes the connection or sends garbage, so it does not name the bad partition."""
    follower = Following()
    follow(follower, 7)
    follower.session = set(range(7))  # type: ignore[attr-defined]
    good = set(range(7)) - bad
    failures = 0
    while True:
        while follower.asked is None:
            follower.advance(RETRY_MS)
        served = answer_unless(follower, bad, loses=loses)
        failures += not served
        assert failures < 40
        if served == good:
            break

    # From now on, only the rare retries of the bad partitions make a fetch fail.
    lost = 0
    for _ in range(100):
        while follower.asked is None:
            follower.advance(RETRY_MS)
        follower.advance(500)
        lost += not answer_unless(follower, bad, loses=loses)
    assert lost <= 100 * 500 // LONGEST_RETRY_MS * len(bad) + 10 * len(bad)


def test_f62_a_leader_that_fails_every_fetch_puts_no_partition_back() -> None:
    """The leader closes every connection without an answer, and recovers later."""
    follower = Following()
    logs = follow(follower, 9)
    for _ in range(200):
        while follower.asked is None:
            follower.advance(RETRY_MS)
        follower.lose_connection()

    began = follower.clock.now
    while not all(log.log_end_offset for log in logs):
        while follower.asked is None:
            follower.advance(RETRY_MS)
        asked = [one for one in follower.asked_for() if not logs[one].log_end_offset]
        follower.answer(*(fetched(one, records=records(0, 3)) for one in asked))
        follower.advance(RETRY_MS)

    assert follower.clock.now - began <= 10 * RETRY_MS


def test_f62_a_leader_that_restarts_puts_no_partition_under_suspicion() -> None:
    follower = Following()
    follow(follower, 4)

    follower.lose_connection()
    follower.channel.connect_failed(True, "refused")
    follower.advance(RETRY_MS)

    assert sorted(follower.asked_for()) == [0, 1, 2, 3]


def test_f60_a_request_names_no_more_partitions_than_a_leader_reads() -> None:
    follower = Following(socket_request_max_bytes="2000")
    replicas = [follower.replica(partition, SMALL) for partition in range(50)]
    for replica in replicas:
        follower.fetcher.follow(replica, 3)
    seen: list[int] = []
    follower.answer()
    for _ in range(10):
        asked = follower.asked
        assert asked is not None
        seen += follower.asked_for()
        assert len(follower.asked_for()) <= 18
        is_last = len(seen) >= 49
        assert (asked.max_wait_ms == 0) is not is_last
        follower.answer()
        if is_last:
            break

    assert sorted(seen) == list(range(1, 50))
