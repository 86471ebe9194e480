"""Records the state of the replicas of each partition that this node leads, every few seconds.

Each round records the partitions whose state has changed. A partition whose state has not changed
is recorded once a minute. A round handles PER_TURN partitions at a time, so that a node with ten
thousand partitions serves requests between these turns.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tidelog.config.settings import BrokerSettings
from tidelog.model.ids import Millis, TopicPartition
from tidelog.model.replication_events import REPLICATION_EVENTS, ReplicaState
from tidelog.node.clock import Clock
from tidelog.node.partitions.replica import Replica

PER_TURN = 100
PAUSE_MS: Millis = 10
AT_LEAST_MS: Millis = 60_000


class ReplicaStates:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        replicas: Iterable[Replica],
        record: Callable[[ReplicaState], None],
    ) -> None:
        self._me = settings.node_id
        self._is_on = settings.tidelog_replication_events_enable
        self._clock = clock
        self._timers = clock.timers
        self._replicas = replicas
        self._record = record
        self._interval_ms = settings.tidelog_replication_events_interval_ms
        self._recorded: dict[TopicPartition, tuple[object, Millis]] = {}
        """Each partition's last recorded state, without its time values, and the recording time."""

    def start(self) -> None:
        if self._is_on:
            self._timers.at(self._clock.now + self._interval_ms, self._round)

    def _round(self) -> None:
        led = [one for one in self._replicas if one.leader is not None]
        if len(self._recorded) > len(led):
            self._recorded = {
                one.partition: self._recorded[one.partition]
                for one in led
                if one.partition in self._recorded
            }
        self._turn(iter(led), self._clock.now + self._interval_ms)

    def _turn(self, rest: Iterator[Replica], next_round: Millis) -> None:
        some = list(islice(rest, PER_TURN))
        for replica in some:
            self._look(replica)
        if len(some) == PER_TURN:
            self._timers.at(self._clock.now + PAUSE_MS, lambda: self._turn(rest, next_round))
        else:
            self._timers.at(max(next_round, self._clock.now + PAUSE_MS), self._round)

    def _look(self, replica: Replica) -> None:
        leader, now = replica.leader, self._clock.now
        if leader is None or replica.partition.topic == REPLICATION_EVENTS:
            return
        followers = leader.followers(now)
        log = replica.log
        place: object = (
            leader.epoch,
            leader.high_watermark,
            log.log_start_offset,
            leader.end,
            leader.isr,
            [(one.broker, one.end_offset) for one in followers],
        )
        was, recorded_at = self._recorded.get(replica.partition, (None, 0))
        if place == was and now - recorded_at < AT_LEAST_MS:
            return
        self._recorded[replica.partition] = (place, now)
        replica.refresh_progress()
        self._record(
            ReplicaState(
                partition=replica.partition,
                leader=self._me,
                leader_epoch=leader.epoch,
                high_watermark=leader.high_watermark,
                log_start_offset=log.log_start_offset,
                end_offset=leader.end,
                isr=tuple(sorted(leader.isr)),
                replicas=tuple(sorted(leader.replicas)),
                min_isr=leader.minimum,
                followers=leader.followers(now),
            )
        )
