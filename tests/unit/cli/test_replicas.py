from tidelog.cli.replica_offsets import Partition, Replica
from tidelog.cli.replicas import Memory, report
from tidelog.model.ids import NO_NODE, TopicPartition

WHERE = TopicPartition("a", 0)
HEALTHY = Partition(
    WHERE, 2, 1000, (Replica(1, 1000, True), Replica(2, 1004, True), Replica(3, None, False))
)


def test_the_leader_comes_first_and_what_is_not_known_is_a_dash() -> None:
    assert list(report([HEALTHY], None)) == [
        "PARTITION  LEADER  WATERMARK  REPLICA  END OFFSET  LAG  ISR",
        "a-0             2       1000        2        1004    0  in",
        "                                    1        1000    4  in",
        "                                    3           -    -  OUT",
    ]


def test_without_a_leader_there_is_neither_watermark_nor_lag() -> None:
    leaderless = Partition(WHERE, NO_NODE, None, (Replica(1, 1000, True),))
    assert list(report([leaderless], None))[1].split() == (
        ["a-0", "none", "-", "1", "1000", "-", "in"]
    )


def test_a_follower_that_was_asked_later_is_not_ahead() -> None:
    moving = Partition(WHERE, 1, 10, (Replica(1, 10, True), Replica(2, 12, True)))
    assert [moving.lag(one) for one in moving.replicas] == [0, 0]


def test_since_when_a_replica_is_in_or_out_is_told_as_far_as_it_was_watched() -> None:
    memory = Memory()
    memory.note([HEALTHY], 100.0)
    back = HEALTHY._replace(replicas=(*HEALTHY.replicas[:2], Replica(3, 900, True)))
    memory.note([back], 107.0)
    memory.note([back], 110.0)
    assert [line.split()[-2] for line in list(report([back], memory))[1:]] == ["10", "10", "3"]
