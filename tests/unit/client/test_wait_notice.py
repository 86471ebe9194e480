"""A command that waits prints the reason once, after a while."""

import pytest

from tidelog.client import wait_notice
from tidelog.client.wait_notice import WaitNotice


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(wait_notice.time, "monotonic", lambda: now[0])
    return now


def test_what_is_over_soon_is_not_mentioned(clock: list[float]) -> None:
    notices: list[str] = []
    notice = WaitNotice(notices.append)
    for _ in range(5):
        for _ in range(15):
            notice.waiting("t-0 has no leader")
            clock[0] += 0.1
        notice.over()
        clock[0] += 60
    assert notices == []


def test_each_long_wait_is_told_once(clock: list[float]) -> None:
    notices: list[str] = []
    notice = WaitNotice(notices.append)
    for _ in range(2):
        for _ in range(100):
            notice.waiting("t-0 has no leader")
            clock[0] += 0.1
        notice.over()
    assert notices == ["waiting: t-0 has no leader"] * 2


def test_nobody_need_listen(clock: list[float]) -> None:
    notice = WaitNotice(None)
    assert not notice.is_wanted
    notice.waiting("x")
    clock[0] += 10
    notice.waiting("x")
