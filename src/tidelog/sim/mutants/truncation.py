"""Kafka's earlier truncation rules, oldest first. Each rule loses data that the next rule keeps.

Before KIP-101, a follower truncated its log to its high watermark. With KIP-101, a follower asks
its leader once for the end of an epoch. With KIP-279, a follower asks until the epochs match. Today
every fetch carries the current leader epoch and the last fetched epoch, and the leader checks both
(KIP-320, KIP-595).
"""

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, LeaderEpoch, Offset, TopicId
from tidelog.node.followers.followed import Followed
from tidelog.node.followers.replica_fetcher import ReplicaFetcher
from tidelog.node.partitions.replica import Replica
from tidelog.protocol.fetch import FetchPartition, PartitionFetched
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement

_Asked = list[tuple[TopicId, list[FetchPartition]]]


class _Lookups:
    """For each fetcher, the partitions whose epochs it has already compared with the leader's."""

    def __init__(self) -> None:
        self._done: WeakKeyDictionary[ReplicaFetcher, set[tuple[TopicId, int, LeaderEpoch]]] = (
            WeakKeyDictionary()
        )

    def is_done(self, fetcher: ReplicaFetcher, followed: Followed) -> bool:
        return (*followed.key, followed.epoch) in self._done.get(fetcher, ())

    def done(self, fetcher: ReplicaFetcher, followed: Followed) -> None:
        self._done.setdefault(fetcher, set()).add((*followed.key, followed.epoch))


def _to_high_watermark() -> Iterable[Replacement]:
    right_follow, right_changed = ReplicaFetcher.follow, ReplicaFetcher._changed

    def follow(self: ReplicaFetcher, replica: Replica, epoch: LeaderEpoch) -> None:
        replica.truncate(min(replica.high_watermark, replica.log.log_end_offset))
        right_follow(self, replica, epoch)

    def changed(self: ReplicaFetcher) -> _Asked:
        return _without_epochs(right_changed(self))

    yield Replacement("tidelog.node.followers.replica_fetcher:ReplicaFetcher.follow", follow)
    yield Replacement("tidelog.node.followers.replica_fetcher:ReplicaFetcher._changed", changed)


def _with_lookups(until_they_match: bool) -> Iterable[Replacement]:
    """The follower compares epochs only after a change of leader. Later fetches carry no epoch."""
    lookups = _Lookups()
    right_changed, right_take_one = ReplicaFetcher._changed, ReplicaFetcher._take_one

    def changed(self: ReplicaFetcher) -> _Asked:
        return [
            (
                topic_id,
                [
                    one._replace(
                        current_leader_epoch=NO_EPOCH,
                        last_fetched_epoch=NO_EPOCH
                        if lookups.is_done(self, self._by_id[topic_id, one.partition])
                        else one.last_fetched_epoch,
                    )
                    for one in asked
                ],
            )
            for topic_id, asked in right_changed(self)
        ]

    def take_one(self: ReplicaFetcher, followed: Followed, fetched: PartitionFetched) -> None:
        is_current = followed.replica.log.log_end_offset == followed.sent_offset
        right_take_one(self, followed, fetched)
        matches = fetched.diverging_epoch is None or not until_they_match
        if is_current and fetched.error is ErrorCode.none and matches:
            lookups.done(self, followed)

    yield Replacement("tidelog.node.followers.replica_fetcher:ReplicaFetcher._changed", changed)
    yield Replacement("tidelog.node.followers.replica_fetcher:ReplicaFetcher._take_one", take_one)


def _one_lookup() -> Iterable[Replacement]:
    def truncation_point(answer: EpochEnd, mine: EpochEnd, log_start: Offset) -> Offset:
        return answer.end_offset

    yield from _with_lookups(until_they_match=False)
    yield Replacement("tidelog.replication.isr.follower:truncation_point", truncation_point)


def _without_epochs(asked: _Asked) -> _Asked:
    return [
        (
            topic_id,
            [
                one._replace(current_leader_epoch=NO_EPOCH, last_fetched_epoch=NO_EPOCH)
                for one in some
            ],
        )
        for topic_id, some in asked
    ]


LADDER = (
    Mutant(
        "truncate-to-hw",
        ("F01", "F02"),
        "A follower truncates its log to its own high watermark, which may be stale.",
        _to_high_watermark,
        "a_follower_does_not_cut_to_its_watermark",
    ),
    Mutant(
        "kip-101",
        ("F03",),
        "A follower asks its leader once where its last epoch ends, and does not walk back.",
        _one_lookup,
        "one_lookup_is_not_enough_after_two_quick_elections",
    ),
    Mutant(
        "kip-279",
        ("F04",),
        "A follower's fetch carries no leader epoch, and the leader counts it in any epoch.",
        lambda: _with_lookups(until_they_match=True),
        "a_fetch_from_an_older_epoch_commits_what_is_cut_later",
    ),
)
