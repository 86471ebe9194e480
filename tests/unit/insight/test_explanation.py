"""The text of `explain` in each situation, word for word."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.unit.cli.partition import AGO_20_S, NOON, facts, left

from tidelog.cli.explain import find
from tidelog.insight.explanation import explain, summary
from tidelog.insight.partition_facts import Facts, Speed
from tidelog.insight.replica_history import BrokerStanding, Loss, PartitionHistory, PastElection
from tidelog.model.user_error import UserError


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def said(known: Facts) -> str:
    return "\n".join(explain(known))


def test_a_healthy_partition() -> None:
    assert said(facts()) == (
        "orders-0 is healthy: broker 1 leads, and all of brokers 1, 2 and 3 are in sync.\n"
        "\n"
        "What it means\n"
        "  Replication factor 3, min.insync.replicas 2: writes with acks=all go on, and "
        "still would after "
        "the loss of 1 more replica."
    )


def test_a_broker_that_was_killed() -> None:
    known = facts(
        isr=(1, 3),
        up=frozenset({1, 3}),
        ends={1: 20_000, 3: 20_000},
        history=left("dead"),
        brokers={2: BrokerStanding(True, AGO_20_S, "connection-refused")},
    )
    assert said(known) == (
        "orders-0 is under-replicated: brokers 1 and 3 are in sync, broker 2 is not.\n"
        "\n"
        "Why\n"
        "  Broker 2 left the in-sync set at 11:59:40 (20 s ago): it was dead (its port refused "
        "connections: the process was gone).\n"
        "\n"
        "What it means\n"
        "  Replication factor 3, min.insync.replicas 2: writes with acks=all go on, and "
        "the loss of "
        "one more replica would stop them.\n"
        "\n"
        "What would bring it back\n"
        "  Start broker 2."
    )


def test_a_broker_that_is_silent() -> None:
    known = facts(
        isr=(1, 3),
        up=frozenset({1, 3}),
        history=left("dead"),
        brokers={2: BrokerStanding(True, AGO_20_S, "session-expired")},
    )
    text = said(known)
    assert "it was dead (it sent no heartbeat in time: paused, cut off or" in text
    assert text.endswith(
        "  Broker 2 has been silent since 11:59:40 (20 s ago): resume it, or start it again."
    )


def test_a_follower_that_was_slow_and_catches_up() -> None:
    known = facts(
        isr=(1, 3),
        ends={1: 92_345, 2: 80_000, 3: 92_345},
        speeds={1: Speed(1_000.0, 1e6), 2: Speed(1_617.0, 4.04e6)},
        history=left("slow", end_offset=70_000, lag_ms=31_200, lag=9_500),
    )
    text = said(known)
    assert (
        "  Broker 2 left the in-sync set at 11:59:40 (20 s ago): it was slow, fetching "
        "but not caught "
        "up for 31 s, 9,500 records behind.\n" in text
    )
    assert text.endswith("  Broker 2 is catching up: 12,345 records behind, 4.0 MB/s, about 20 s.")


def test_a_follower_that_is_stuck_and_stays_so() -> None:
    known = facts(
        isr=(1, 3),
        ends={1: 500, 2: 400, 3: 500},
        speeds={1: Speed(10.0), 2: Speed(0.0)},
        history=left("stuck", lag_ms=30_400),
    )
    text = said(known)
    assert "it was stuck, without a fetch for 30 s." in text
    assert text.endswith("  Broker 2 is up but does not fetch: 100 records behind. Check its log.")


def test_a_follower_that_never_gets_there() -> None:
    known = facts(
        isr=(1, 3),
        ends={1: 500_000, 2: 400_000, 3: 500_000},
        speeds={1: Speed(1_000.0), 2: Speed(900.0)},
        history=left("slow"),
    )
    assert (
        "Broker 2 is 100,000 records behind and does not catch up with its leader (900 records/s)"
        in said(known)
    )


def test_a_follower_that_has_caught_up_is_not_told_to_do_anything() -> None:
    known = facts(isr=(1, 3), history=left("shutting-down"))
    text = said(known)
    assert "it was shutting down." in text
    assert text.endswith("  Broker 2 has caught up, and should be in sync again in a moment.")


def test_a_failed_directory() -> None:
    known = facts(isr=(1, 3), ends={1: 9, 3: 9}, history=left("log-dir-failed"))
    text = said(known)
    assert "the log directory that holds it failed." in text
    assert "Repair or replace the log directory of broker 2, and start it again." in text


def test_a_failed_directory_that_no_event_tells_of() -> None:
    out = facts(isr=(1, 3), ends={1: 9, 3: 9}, offline=(2,))
    assert (
        "Broker 2 is not in the in-sync set; it is up, but the log directory that holds it has "
        "failed.\n"
    ) in said(out)
    alone = facts(leader=-1, replicas=(1,), isr=(1,), ends={1: None}, offline=(1,))
    assert "Why\n  The log directory of broker 1 that holds it has failed.\n" in said(alone)
    assert "`tidelog stray` lists and restores the directory.\n" in said(alone)


def test_below_min_isr() -> None:
    known = facts(isr=(1,), up=frozenset({1}), ends={1: 9})
    assert said(known) == (
        "orders-0 is below min ISR: broker 1 of 1, 2 and 3 is in sync, and "
        "min.insync.replicas is 2.\n"
        "\n"
        "Why\n"
        "  Broker 2 is not in the in-sync set; it is down.\n"
        "  Broker 3 is not in the in-sync set; it is down.\n"
        "\n"
        "What it means\n"
        "  Replication factor 3, min.insync.replicas 2: writes with acks=all are refused "
        "(NOT_ENOUGH_REPLICAS) and nothing new is committed until 1 more replica is in "
        "sync. Committed "
        "records can be read.\n"
        "  Unclean elections are off: the partition waits rather than lose records.\n"
        "\n"
        "What would bring it back\n"
        "  Start broker 2.\n"
        "  Start broker 3."
    )


def test_without_a_leader_but_with_eligible_replicas() -> None:
    election = PastElection(AGO_20_S, -1, 1, "dead", True)
    known = facts(
        leader=-1,
        isr=(),
        elr=(1,),
        up=frozenset({2, 3}),
        ends={},
        history=PartitionHistory(election=election),
    )
    assert said(known) == (
        "orders-0 has no leader, so it can be neither written nor read.\n"
        "\n"
        "Why\n"
        "  Broker 1 is not in the in-sync set; it is down.\n"
        "  Broker 2 is not in the in-sync set; it is up.\n"
        "  Broker 3 is not in the in-sync set; it is up.\n"
        "  It has had no leader since 11:59:40 (20 s ago), when broker 1 died: no replica "
        "that could lead was in sync.\n"
        "\n"
        "What it means\n"
        "  Replication factor 3, min.insync.replicas 2: producers and consumers wait, and get "
        "LEADER_NOT_AVAILABLE.\n"
        "  Unclean elections are off: the partition waits rather than lose records.\n"
        "\n"
        "What would bring it back\n"
        "  Start broker 1: it holds everything that was committed.\n"
        "  Only if that will never be possible: `tidelog configs --alter --entity-type topics "
        "--entity-name orders --add-config unclean.leader.election.enable=true` lets broker 2 or 3 "
        "lead, and records that only the other replicas hold are lost."
    )


def test_without_a_leader_or_anyone_eligible_the_last_known_one_is_asked_for() -> None:
    known = facts(leader=-1, isr=(), last_known_elr=(1,), up=frozenset(), allows_unclean=True)
    text = said(known)
    assert "Start broker 1, the last known leader: it is elected when it is back" in text
    assert "Unclean elections are on: a replica that lacks committed records may lead." in text
    assert "Start any of brokers 1, 2 and 3." in text


def test_an_unclean_election_and_what_it_cost() -> None:
    history = PartitionHistory(
        election=PastElection(AGO_20_S, 1, -1, "unclean", False),
        losses=[Loss(AGO_20_S - 5_000, 801, 800), Loss(AGO_20_S, 1_500, 1_200)],
    )
    text = said(facts(history=history))
    assert (
        "Broker 1 became leader at 11:59:40 (20 s ago), by an unclean election, which may" in text
    )
    assert "1 committed record (offsets 800 to 800) was lost at 11:59:35" in text
    assert "300 committed records (offsets 1,200 to 1,499) were lost at 11:59:40" in text


def test_who_leads_since_when_and_why() -> None:
    history = PartitionHistory(election=PastElection(NOON - 90_000_000, 1, 2, "dead", True))
    text = said(facts(history=history))
    assert "Broker 1 became leader at 2026-11-15 11:00:00 (25 h ago), when broker 2 died." in text


def test_without_events_the_rest_is_known_all_the_same() -> None:
    known = facts(
        isr=(1, 3),
        up=frozenset({1, 3}),
        events_missing="this cluster does not record replication events (key)",
    )
    assert (
        "  Broker 2 is not in the in-sync set; it is down.\n"
        "  Further details are missing: this cluster does not record replication events (key).\n"
    ) in said(known)
    assert "Further details are missing" not in said(facts(events_missing="off"))


def test_a_history_that_does_not_reach_back_far_enough_is_said_not_to() -> None:
    cut = "  Further details are missing: only events since 11:40:00 (20 min ago) were read.\n"
    since = NOON - 1_200_000
    unknown = facts(isr=(1, 3), up=frozenset({1, 3}), events_since=since)
    assert "  Broker 2 is not in the in-sync set; it is down.\n" + cut in said(unknown)
    assert cut in said(facts(leader=-1, ends={}, events_since=since))

    assert cut not in said(replace(unknown, history=left("dead")))
    assert cut not in said(replace(unknown, adding=(2,)))
    assert cut not in said(facts(events_since=since))


def test_without_a_controller_nothing_can_change() -> None:
    text = said(facts(controller=None))
    assert text.startswith("orders-0 has all its replicas in sync, but the cluster has no active")
    assert "a majority of the quorum's voters is unavailable." in text
    assert "Start controllers until a majority of the quorum's voters is up." in text


def test_a_leader_that_does_not_answer() -> None:
    known = facts(ends={2: 9, 3: 9}, controller=None)
    text = said(known)
    assert text.startswith("orders-0 is led by broker 1, which does not answer.")
    assert "producers and consumers wait until it answers or another replica leads." in text
    assert (
        "when its session expires (broker.session.timeout.ms), once there is a controller." in text
    )
    assert not known.is_healthy


def test_a_replica_that_is_only_being_added() -> None:
    known = facts(replicas=(1, 2, 3, 4), adding=(4,), up=frozenset({1, 2, 3, 4}))
    assert "Broker 4 is being added, and has not caught up yet." in said(known)


def test_settings_that_ask_for_more_than_there_is() -> None:
    alone = facts(replicas=(1,), isr=(1,), min_isr=2)
    assert said(alone) == (
        "orders-0 is healthy, but broker 1 is its only replica.\n"
        "\n"
        "What it means\n"
        "  Replication factor 1, min.insync.replicas 2: more than there are replicas, so "
        "all of them "
        "must be in sync."
    )


def test_a_topic_is_summed_up_in_a_line() -> None:
    well, ill = facts(), facts(isr=(1, 3))
    assert summary("orders", [well]) == "orders: its only partition is healthy."
    assert summary("orders", [well, well]) == "orders: all 2 partitions are healthy."
    assert summary("orders", [well, ill]) == "orders: 1 of 2 partitions is healthy."
    assert not replace(well, controller=None).is_healthy


@pytest.mark.parametrize(
    ("subject", "found"),
    [("a", ("a", None)), ("a-1", ("a", 1)), ("b-2", ("b-2", None)), ("b-2-0", ("b-2", 0))],
)
def test_a_topic_of_the_very_name_comes_before_a_partition(
    subject: str, found: tuple[str, int | None]
) -> None:
    assert find(subject, ["a", "b", "b-2"]) == found


def test_what_is_not_there_is_said_in_one_sentence() -> None:
    with pytest.raises(UserError, match=r"^there is no topic or partition 'c-0'\.$"):
        find("c-0", ["a"])
