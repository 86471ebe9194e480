"""The settings that `whatif` simulates."""

import pytest

from tidelog.cli.commands import invoke
from tidelog.cli.simulation import whatif
from tidelog.cli.simulation.own_settings import OwnSettings, TopicSettings, own_settings
from tidelog.sim.whatif.question import Question


def test_flags_come_first_then_the_topic_then_assumptions() -> None:
    topic = TopicSettings(2, 1, unclean=False, flush=False)
    assert own_settings((3,), (1,), ("1",), topic) == OwnSettings((3,), (1,), ("1",), ())
    assert own_settings((), (), (), topic) == OwnSettings((2,), (1,), ("all",), ("acks=all",))
    assert own_settings((), (), ("1",), None) == OwnSettings(
        (3,), (2,), ("1",), ("replication.factor=3", "min.insync.replicas=2")
    )
    assert own_settings((1,), (), ("1",), None).minimums == (1,), "no more than replicas"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[Question]]:
    """The questions that `whatif` would simulate; the fixture replaces the simulation."""
    noted: list[list[Question]] = []
    monkeypatch.setattr(whatif, "report", lambda questions, *_: noted.append(questions))
    return noted


def test_one_fault_is_asked_of_one_set_of_settings(
    asked: list[list[Question]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["whatif", "--fault", "leader-crash", "--acks", "1"]) == 0
    assert asked == [[Question(3, 2, "1", "leader-crash")]]
    assert capsys.readouterr().out == (
        "Assumed, since not given: replication.factor=3, min.insync.replicas=2.\n"
    )


def test_all_settings_are_compared_if_asked_or_if_no_single_fault_is_given(
    asked: list[list[Question]],
) -> None:
    invoke(["whatif", "--fault", "leader-crash", "--all-settings"])
    invoke(["whatif"])
    assert {one.acks for one in asked[0]} == {"0", "1", "all"}
    assert {one.fault for one in asked[0]} == {"leader-crash"}
    assert len({one.settings for one in asked[1]}) > 10
