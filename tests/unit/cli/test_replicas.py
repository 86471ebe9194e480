"""The table of replicas and its columns; `--watch` continues after any error."""

from io import StringIO
from itertools import islice

import pytest
from rich.console import Console
from tests.unit.cli.stand_in import Topic, stand_in

from tidelog.cli.main import run
from tidelog.cli.output.replica_screen import Seen, looks, picture
from tidelog.cli.replicas import report
from tidelog.client.replica_offsets import PartitionOffsets, ReplicaOffsets
from tidelog.insight.lag_time import MOST, LookTime
from tidelog.insight.replica_history import FollowerHistory, IsrMembership, ReplicaHistory
from tidelog.insight.replica_table import TIMED_HEADS, Memory, ReplicaRow, rows
from tidelog.model.ids import NO_NODE, TopicPartition
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.model.user_error import UserError

WHERE = TopicPartition("a", 0)
HURT = PartitionOffsets(
    WHERE,
    2,
    1000,
    (ReplicaOffsets(1, 1000, True), ReplicaOffsets(2, 1004, True), ReplicaOffsets(3, None, False)),
)
NOW = 1_000_000


def at(moment: int, took: int = 0) -> LookTime:
    return LookTime(moment - took, moment)


def table(memory: Memory, *partitions: PartitionOffsets) -> list[str]:
    return list(report(partitions, memory))


def test_the_leader_comes_first_and_what_is_not_known_is_a_dash() -> None:
    assert list(report([HURT], None)) == [
        "PARTITION  LEADER  WATERMARK  REPLICA  END OFFSET  LAG  ISR",
        "a-0             2       1000        2        1004    0  in",
        "                                    1        1000    4  in",
        "                                    3           -    -  OUT",
    ]


def test_without_a_leader_there_is_neither_watermark_nor_lag() -> None:
    leaderless = PartitionOffsets(WHERE, NO_NODE, None, (ReplicaOffsets(1, 1000, True),))
    assert list(report([leaderless], None))[1].split() == [
        "a-0",
        "none",
        "-",
        "1",
        "1000",
        "-",
        "in",
    ]


def test_a_follower_that_was_asked_later_is_not_ahead() -> None:
    moving = PartitionOffsets(
        WHERE, 1, 10, (ReplicaOffsets(1, 10, True), ReplicaOffsets(2, 12, True))
    )
    assert [moving.lag(one) for one in moving.replicas] == [0, 0]


def test_events_tell_for_how_long_and_why() -> None:
    history = ReplicaHistory()
    of = history.of(WHERE)
    of.members = {
        1: IsrMembership(True, NOW - 3_000),
        2: IsrMembership(True, NOW - 7_200_000),
        3: IsrMembership(False, NOW - 12_000, "dead"),
    }
    of.followers = {
        1: FollowerHistory(NOW - 400, 2, 990, 0, 0, True),
        3: FollowerHistory(NOW - 5_000, 2, 800, 200, 9_000, False),
    }
    memory = Memory(history)
    memory.note([HURT], at(NOW))

    assert table(memory, HURT) == [
        "PARTITION  LEADER  WATERMARK  REPLICA  END OFFSET  LAG  BEHIND    ISR  SINCE",
        "a-0             2       1000        2        1004    0  0 ms      in   2 h",
        "                                    1        1000    4  < 400 ms  in   3.0 s",
        "                                    3           -    -  < 14 s    OUT  12 s, dead",
    ]


def test_without_events_it_is_told_as_far_as_it_was_watched() -> None:
    memory = Memory(ReplicaHistory())
    memory.note([HURT], at(NOW))
    assert [line.split()[-1] for line in table(memory, HURT)[1:]] == ["-", "-", "-"]

    back = HURT._replace(replicas=(*HURT.replicas[:2], ReplicaOffsets(3, 900, True)))
    memory.note([back], at(NOW + 20_000))
    memory.note([back], at(NOW + 33_000))

    assert [line.split()[-2:] for line in table(memory, back)[1:]] == [
        ["33", "s"],
        ["33", "s"],
        ["13", "s"],
    ]


def behind(history: ReplicaHistory, *looks: tuple[LookTime, int, int]) -> list[str]:
    """The lag that is shown after each look. A look is (time, leader's end, follower's end)."""
    memory, seen = Memory(history), []
    for look, leader_end, end in looks:
        pair = (ReplicaOffsets(1, leader_end, True), ReplicaOffsets(2, end, True))
        found = PartitionOffsets(WHERE, 1, end, pair)
        memory.note([found], look)
        seen.append(memory.behind(found, pair[1]))
    return seen


def with_follower(*ends: int | None) -> ReplicaHistory:
    history = ReplicaHistory()
    history.of(WHERE).followers = {2: FollowerHistory(NOW, 1, *ends, is_in_sync=True)}
    return history


def test_a_follower_of_a_busy_partition_is_never_far_behind() -> None:
    """At each look, the follower has passed the leader's end offset of the previous look.

    So it is behind by at most the time between two looks. After a single look, only the leader's
    older report gives a bound.
    """
    history = with_follower(97, 3, 3)
    looks = [(at(NOW + 1_000 * n, took=10), 100 + 50 * n, 98 + 50 * n) for n in range(1, 5)]
    assert behind(history, *looks) == ["< 1.0 s"] * 4
    assert behind(history, looks[3]) == ["< 4.0 s"]


def test_a_follower_that_has_not_come_on_is_behind_as_its_leader_counts_it() -> None:
    history = with_follower(97, 3, 9_000)
    assert behind(history, (at(NOW + 5_000), 200, 99)) == ["14 s"]
    never_level = with_follower(97, 3, None)
    assert behind(never_level, (at(NOW + 5_000), 200, 99)) == ["> 5.0 s"]
    assert behind(with_follower(None, None, None), (at(NOW + 5_000), 200, 99)) == ["-"]


def test_what_another_leader_told_or_what_was_told_after_the_look_proves_nothing() -> None:
    history = with_follower(97, 3, 9_000)
    of = history.of(WHERE)
    assert behind(history, (at(NOW + 5, took=10), 200, 99)) == ["-"]
    of.followers = {2: of.followers[2]._replace(leader=3)}
    assert behind(history, (at(NOW + 5_000), 200, 99)) == ["-"]


def test_without_events_looks_tell_for_how_long_a_follower_has_been_behind() -> None:
    looks = [
        (at(NOW, took=10), 100, 100),
        (at(NOW + 1_000, took=10), 150, 100),
        (at(NOW + 2_000, took=10), 180, 100),
        (at(NOW + 9_000, took=10), 200, 100),
        (at(NOW + 10_000, took=10), 220, 190),
        (at(NOW + 11_000, took=10), 220, 220),
    ]
    assert behind(ReplicaHistory(), *looks) == [
        "0 ms",
        "< 1.0 s",  # it was caught up one look earlier
        "990 ms",
        "8.0 s",
        "990 ms",  # its end is between the leader's ends at the third and the fourth look
        "0 ms",
    ]


def test_a_follower_that_was_never_seen_level_is_behind_for_longer_than_it_was_watched() -> None:
    looks = [(at(NOW), 100, 7), (at(NOW + 3_000), 150, 50)]
    assert behind(ReplicaHistory(), *looks) == ["-", "> 3.0 s"]


def test_looks_at_a_log_that_was_cut_or_at_another_topic_or_leader_prove_nothing() -> None:
    cut = [(at(NOW), 100, 7), (at(NOW + 1_000), 90, 80), (at(NOW + 2_000), 95, 85)]
    assert behind(ReplicaHistory(), *cut) == ["-", "-", "> 1.0 s"]

    memory = Memory(ReplicaHistory())
    led_by_2 = PartitionOffsets(
        WHERE, 2, None, (ReplicaOffsets(1, 100, True), ReplicaOffsets(2, None, True))
    )
    old = PartitionOffsets(WHERE, 1, 7, (ReplicaOffsets(1, 100, True), ReplicaOffsets(2, 7, True)))
    new = PartitionOffsets(WHERE, 1, 7, (ReplicaOffsets(1, 110, True), ReplicaOffsets(2, 8, True)))
    for between in ([], [led_by_2]):
        for number, found in enumerate(([old], between, [new])):
            memory.note(found, at(NOW + number))
        assert memory.behind(new, new.replicas[1]) == "-"


def test_a_long_watch_remembers_enough_of_it() -> None:
    looks = [(at(NOW + 1_000 * n), 100 + n, 100) for n in range(2 * MOST)]
    assert behind(ReplicaHistory(), *looks)[-1] == "8 min"


def test_an_event_that_has_not_come_yet_is_not_contradicted() -> None:
    history = ReplicaHistory()
    history.of(WHERE).members = {3: IsrMembership(True, NOW - 60_000)}
    memory = Memory(history)
    memory.note([HURT], at(NOW))
    assert table(memory, HURT)[3].endswith("OUT  -")


def test_what_no_event_tells_of_has_been_so_for_longer_than_events_go_back() -> None:
    history = ReplicaHistory()
    history.begins_at = NOW - 1_200_000
    history.of(WHERE).followers = {
        1: FollowerHistory(NOW - 400, 2, 990, 0, 0, True),
        3: FollowerHistory(NOW - 400, 2, 800, 200, 9_000, True),
    }
    memory = Memory(history)
    memory.note([HURT], at(NOW))
    since = [memory.since(HURT, replica) for replica in HURT.replicas]
    assert since == ["> 20 min", "> 20 min", "-"]  # no event says when the third replica left

    back = HURT._replace(replicas=(*HURT.replicas[:2], ReplicaOffsets(3, 900, True)))
    memory.note([back], at(NOW + 2_000))
    memory.note([back], at(NOW + 5_000))
    assert memory.since(back, back.replicas[2]) == "3.0 s"  # it was first seen in sync 3 s earlier


def test_a_screen_shows_as_many_rows_as_it_has_room_for() -> None:
    memory = Memory(ReplicaHistory())
    memory.note([HURT], at(NOW))
    console = Console(width=110, record=True, file=StringIO())

    console.print(picture(Seen(list(rows([HURT, HURT], memory))), 4))

    shown = console.export_text()
    assert shown.count("a-0") == 2
    assert "6 replicas, 2 out of sync; 2 more rows, --topic shows fewer." in shown


def test_a_look_that_fails_is_told_and_the_next_one_is_taken() -> None:
    found = list(rows([HURT], None))
    outcomes = iter([found, UserError("no broker can be reached."), found[:1]])

    def look() -> list[ReplicaRow]:
        outcome = next(outcomes)
        if isinstance(outcome, UserError):
            raise outcome
        return outcome

    assert list(islice(looks(look), 3)) == [
        Seen(found),
        Seen(found, "no broker can be reached"),
        Seen(found[:1]),
    ]


def test_what_cannot_be_looked_at_from_the_beginning_is_not_watched() -> None:
    def look() -> list[ReplicaRow]:
        raise UserError("no broker can be reached.")

    with pytest.raises(UserError, match="no broker can be reached"):
        next(looks(look))


def test_a_screen_says_that_what_it_shows_is_old() -> None:
    memory = Memory(ReplicaHistory())
    memory.note([HURT], at(NOW))
    console = Console(width=200, record=True, file=StringIO())

    console.print(picture(Seen(list(rows([HURT], memory)), "no broker can be reached"), 4))

    shown = " ".join(console.export_text().split())
    assert "no broker can be reached. These rows are out of date; trying again." in shown
    assert "a-0" in shown


def test_a_topic_that_does_not_exist_is_said_not_to(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in() as broker:
        broker.topics["orders"] = Topic()
        asked = ["replicas", "--bootstrap-server", broker.bootstrap]
        assert run([*asked, "--topic", "order"]) == 1
        assert capsys.readouterr() == ("", "tidelog: Topic 'order' does not exist as expected.\n")

        assert run([*asked, "--topic", "ord.*"]) == 0
        assert "orders-0" in capsys.readouterr().out


def test_a_cluster_without_topics_of_its_users_has_a_table_without_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with stand_in() as broker:
        broker.topics[REPLICATION_EVENTS] = Topic()
        assert run(["replicas", "--bootstrap-server", broker.bootstrap]) == 0
    out, err = capsys.readouterr()
    assert (out.split(), err) == ("  ".join(TIMED_HEADS).split(), "")
