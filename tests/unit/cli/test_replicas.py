from io import StringIO

from rich.console import Console

from tidelog.cli.replica_history import Follower, Membership, ReplicaHistory
from tidelog.cli.replica_offsets import Partition, Replica
from tidelog.cli.replica_screen import picture
from tidelog.cli.replica_table import Memory, rows
from tidelog.cli.replicas import report
from tidelog.model.ids import NO_NODE, TopicPartition

WHERE = TopicPartition("a", 0)
HURT = Partition(
    WHERE, 2, 1000, (Replica(1, 1000, True), Replica(2, 1004, True), Replica(3, None, False))
)
NOW = 1_000_000


def told(memory: Memory, *partitions: Partition) -> list[str]:
    return list(report(partitions, memory))


def test_the_leader_comes_first_and_what_is_not_known_is_a_dash() -> None:
    assert list(report([HURT], None)) == [
        "PARTITION  LEADER  WATERMARK  REPLICA  END OFFSET  LAG  ISR",
        "a-0             2       1000        2        1004    0  in",
        "                                    1        1000    4  in",
        "                                    3           -    -  OUT",
    ]


def test_without_a_leader_there_is_neither_watermark_nor_lag() -> None:
    leaderless = Partition(WHERE, NO_NODE, None, (Replica(1, 1000, True),))
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
    moving = Partition(WHERE, 1, 10, (Replica(1, 10, True), Replica(2, 12, True)))
    assert [moving.lag(one) for one in moving.replicas] == [0, 0]


def test_events_tell_for_how_long_and_why() -> None:
    history = ReplicaHistory()
    of = history.of(WHERE)
    of.members = {
        1: Membership(True, NOW - 3_000),
        2: Membership(True, NOW - 7_200_000),
        3: Membership(False, NOW - 12_000, "dead"),
    }
    of.followers = {
        1: Follower(NOW - 400, 990, 0, 0, 10),
        3: Follower(NOW - 5_000, 800, 200, 9_000, 9_000),
    }
    memory = Memory(history)
    memory.note([HURT], NOW)

    assert told(memory, HURT) == [
        "PARTITION  LEADER  WATERMARK  REPLICA  END OFFSET  LAG  BEHIND    ISR  SINCE",
        "a-0             2       1000        2        1004    0  0 ms      in   2 h",
        "                                    1        1000    4  < 400 ms  in   3.0 s",
        "                                    3           -    -  14 s      OUT  12 s, dead",
    ]


def test_without_events_it_is_told_as_far_as_it_was_watched() -> None:
    memory = Memory(ReplicaHistory())
    memory.note([HURT], NOW)
    assert [line.split()[-1] for line in told(memory, HURT)[1:]] == ["-", "-", "-"]

    back = HURT._replace(replicas=(*HURT.replicas[:2], Replica(3, 900, True)))
    memory.note([back], NOW + 20_000)
    memory.note([back], NOW + 33_000)

    assert [line.split()[-2:] for line in told(memory, back)[1:]] == [
        ["33", "s"],
        ["33", "s"],
        ["13", "s"],
    ]


def test_an_event_that_has_not_come_yet_is_not_contradicted() -> None:
    history = ReplicaHistory()
    history.of(WHERE).members = {3: Membership(True, NOW - 60_000)}
    memory = Memory(history)
    memory.note([HURT], NOW)
    assert told(memory, HURT)[3].endswith("OUT  -")


def test_a_screen_shows_as_many_rows_as_it_has_room_for() -> None:
    memory = Memory(ReplicaHistory())
    memory.note([HURT], NOW)
    console = Console(width=110, record=True, file=StringIO())

    console.print(picture(list(rows([HURT, HURT], memory)), 4))

    shown = console.export_text()
    assert shown.count("a-0") == 2
    assert "6 replicas, 2 out of sync; 2 more rows, --topic shows fewer." in shown
