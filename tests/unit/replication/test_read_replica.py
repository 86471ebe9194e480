"""The replica that a consumer reads from: Kafka's RackAwareReplicaSelector."""

from tidelog.replication.isr.read_replica import ReplicaView, rack_aware


def follower(id: int, rack: str | None, end: int = 10, caught_up: int = 100) -> ReplicaView:
    return ReplicaView(end, caught_up, id, rack)


def test_the_leader_is_read_from_in_its_own_rack_and_by_who_says_nothing() -> None:
    followers = [follower(2, "a"), follower(3, "b")]
    assert rack_aware("a", "a", followers) is None
    assert rack_aware("", "a", followers) is None


def test_a_follower_in_the_readers_rack_is_preferred() -> None:
    assert rack_aware("b", "a", [follower(2, "a"), follower(3, "b")]) == 3


def test_without_one_in_its_rack_the_reader_stays_with_the_leader() -> None:
    assert rack_aware("c", "a", [follower(2, "a"), follower(3, None)]) is None


def test_of_several_the_one_that_has_most_then_the_one_that_was_in_time_last() -> None:
    assert rack_aware("b", "a", [follower(2, "b", 10), follower(3, "b", 9)]) == 2
    assert rack_aware("b", "a", [follower(2, "b", 10, 99), follower(3, "b", 10, 100)]) == 3
