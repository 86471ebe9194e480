"""The advice for a partition leaves out steps that are already done or cannot help."""

from dataclasses import replace

from tests.unit.cli.partition import AGO_20_S, facts, left

from tidelog.insight.remedies import remedies
from tidelog.insight.replica_history import BrokerStanding

MEND_2 = "Repair or replace the log directory of broker 2, and start it again."


def test_without_a_leader_since_a_directory_failed_the_directory_is_to_be_mended() -> None:
    known = facts(
        leader=-1,
        replicas=(2,),
        isr=(),
        elr=(2,),
        min_isr=1,
        ends={},
        history=left("log-dir-failed"),
    )
    assert list(remedies(known)) == [
        "Repair the log directory of broker 2 where this partition is, and start the broker again: "
        "it holds everything that was committed."
    ]
    last = replace(known, elr=(), last_known_elr=(2,))
    assert list(remedies(last)) == [
        "Repair the log directory of broker 2, the last known leader, where this partition is, and "
        "start the broker again: it is elected when it is back, though it may have lost its last "
        "records."
    ]


def test_a_replica_in_a_failed_directory_cannot_be_elected_uncleanly() -> None:
    known = facts(
        leader=-1,
        isr=(),
        elr=(1,),
        up=frozenset({2, 3}),
        ends={3: 9},
        history=left("log-dir-failed"),
    )
    first, second = remedies(known)
    assert first == "Start broker 1: it holds everything that was committed."
    assert "unclean.leader.election.enable=true` lets broker 3 lead," in second

    nobody = replace(known, allows_unclean=True, up=frozenset({2}), ends={})
    assert list(remedies(nobody)) == [first, "Start any of brokers 1 and 3.", MEND_2]


def test_the_cluster_itself_tells_of_a_failed_directory_where_no_events_do() -> None:
    alone = facts(leader=-1, replicas=(1,), isr=(1,), ends={1: None}, offline=(1,))
    (mend,) = remedies(alone)
    assert mend.startswith("Repair the log directory of broker 1 where this partition is")
    assert list(remedies(facts(isr=(1, 3), ends={1: 9, 3: 9}, offline=(2,)))) == [MEND_2]


def test_who_says_how_far_it_is_has_its_directory_again() -> None:
    mended = facts(isr=(1, 3), ends={1: 900, 2: 4, 3: 900}, history=left("log-dir-failed"))
    assert list(remedies(mended)) == ["Broker 2 is 896 records behind."]


def test_a_broker_that_stopped_after_its_directory_had_failed_is_not_only_to_be_started() -> None:
    stopped = facts(
        isr=(1, 3), up=frozenset({1, 3}), ends={1: 9, 3: 9}, history=left("log-dir-failed")
    )
    assert list(remedies(stopped)) == [MEND_2]


def test_an_eligible_replica_that_is_up_is_not_to_be_started() -> None:
    known = facts(leader=-1, isr=(), elr=(1,), ends={1: 9})
    assert list(remedies(known)) == [
        "Broker 1 is up, and should lead in a moment; if it does not, check its log."
    ]
    waiting = replace(known, elr=(), last_known_elr=(1,), controller=None)
    assert list(remedies(waiting))[1:] == [
        "Broker 1, the last known leader, is up, and should lead in a moment, once there is a "
        "controller; if it does not, check its log."
    ]


def test_an_eligible_replica_that_fell_silent_may_only_have_to_be_resumed() -> None:
    known = facts(
        leader=-1,
        isr=(),
        elr=(1, 2),
        up=frozenset({3}),
        ends={3: 9},
        brokers={
            1: BrokerStanding(True, AGO_20_S, "session-expired"),
            2: BrokerStanding(True, AGO_20_S, "connection-refused"),
        },
    )
    either, _ = remedies(known)
    assert either == ("Start or resume broker 1 or 2: each holds everything that was committed.")
    (gone, _) = remedies(replace(known, elr=(2,)))
    assert gone == "Start broker 2: it holds everything that was committed."


def test_where_anyone_may_lead_the_one_that_is_awaited_is_named_once() -> None:
    known = facts(leader=-1, replicas=(1,), isr=(), elr=(1,), up=frozenset(), allows_unclean=True)
    assert list(remedies(known)) == ["Start broker 1: it holds everything that was committed."]
    lost = replace(known, replicas=(1, 2), up=frozenset({2}), offline=(1, 2), ends={})
    assert list(remedies(lost))[1:] == [MEND_2]
    other = replace(known, replicas=(1, 2), elr=(), ends={}, up=frozenset({1}), offline=(1, 2))
    assert list(remedies(other)) == [
        "Start broker 2.",
        "Repair or replace the log directory of broker 1, and start it again.",
    ]
