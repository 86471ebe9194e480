from tidelog.replication.waiters import OffsetWaiters


def test_waiters_are_released_in_order_up_to_the_offset() -> None:
    waiters: OffsetWaiters[str] = OffsetWaiters()
    for offset, name in ((3, "a"), (5, "b"), (5, "c"), (8, "d")):
        waiters.add(offset, name)

    assert list(waiters.release(2)) == []
    assert list(waiters.release(5)) == ["a", "b", "c"]
    assert list(waiters.release(5)) == []
    assert len(waiters) == 1


def test_a_repeated_write_waits_no_longer_than_its_elders() -> None:
    waiters: OffsetWaiters[str] = OffsetWaiters()
    waiters.add(8, "new")
    waiters.add(3, "repeated")

    assert list(waiters.release(5)) == []
    assert list(waiters.release(8)) == ["new", "repeated"]


def test_whoever_waits_in_vain_is_told() -> None:
    waiters: OffsetWaiters[str] = OffsetWaiters()
    waiters.add(3, "a")
    waiters.add(8, "b")

    assert list(waiters.drain()) == ["a", "b"]
    assert list(waiters.release(100)) == []
