"""The group coordinators of this node: one per `__consumer_offsets` partition that the node leads.

Invariant: a coordinator serves requests only while the node leads its partition. The coordinator
loads its state from the partition's log. A coordinator's write is complete when every in-sync
replica has acknowledged it.
"""

from collections.abc import Collection
from itertools import count
from typing import Any

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS
from tidelog.api.handler import Request
from tidelog.config.group_settings import GroupSettings
from tidelog.config.settings import BrokerSettings
from tidelog.coordination.effects import AnswerRequest, AppendRecords, ClientInfo, GroupEffect
from tidelog.coordination.groups.replies import refusal
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.shard import GroupShard
from tidelog.log.results import AppendOrigin
from tidelog.model.dice import Dice
from tidelog.model.effects import (
    AppendBatches,
    AppendResult,
    Coordinate,
    CoordinateAll,
    PartitionAppend,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.coordinators.group_loading import GroupLoading
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer
from tidelog.protocol.records.records import Record, build_batch

_LOADING = ErrorCode.coordinator_load_in_progress


class Coordinators:
    def __init__(
        self,
        settings: BrokerSettings,
        dice: Dice,
        clock: Clock,
        ready: ReadyQueue,
        partitions: Partitions,
        current: CurrentImage,
        jobs: Jobs,
    ) -> None:
        self._settings = _group_settings(settings)
        self._dice = dice
        self._clock = clock
        self._timers = clock.timers
        self._ready = ready
        self._partitions = partitions
        self._current = current
        self._jobs = jobs
        self._shards: dict[int, GroupShard] = {}
        self._loading: dict[int, GroupLoading] = {}
        self._alarms: dict[int, tuple[Millis, Timer]] = {}
        self._waiting: dict[int, Resume] = {}
        self._tickets = count(1)

    # -- beginning and ending leadership -----------------------------------------------------------

    def lead(self, replica: Replica) -> None:
        """Load the groups of a partition from its log."""
        index, now = replica.partition.partition, self._clock.now
        self.resign(index)
        held = replica.log
        shard = GroupShard(
            self._settings, self._dice, self._clock, lambda: held.config.largest_batch
        )
        loading = GroupLoading(
            replica, shard, self._jobs, now, lambda loaded: self._loaded(index, loading, loaded)
        )
        self._loading[index] = loading
        loading.begin()

    def _loaded(self, index: int, loading: GroupLoading, shard: GroupShard | None) -> None:
        if self._loading.get(index) is not loading:
            return  # the leadership has ended in the meantime
        del self._loading[index]
        if shard is None:
            return
        self._shards[index] = shard
        self._carry_out(index, shard.loaded(self._clock.now))
        for partitions in loading.deleted:
            self._carry_out(index, shard.partitions_deleted(partitions, self._clock.now))

    def resign(self, index: int) -> None:
        if (loading := self._loading.pop(index, None)) is not None:
            loading.cancel()
        shard = self._shards.pop(index, None)
        if shard is not None:
            if (alarm := self._alarms.pop(index, None)) is not None:
                alarm[1].cancel()
            self._carry_out(index, shard.abandon())

    def resign_all(self) -> None:
        for index in (*self._loading, *self._shards):
            self.resign(index)

    def partitions_deleted(self, partitions: Collection[TopicPartition]) -> None:
        for index, shard in list(self._shards.items()):
            self._carry_out(index, shard.partitions_deleted(partitions, self._clock.now))
        for loading in self._loading.values():
            loading.deleted.append(partitions)

    # -- effects of handlers -----------------------------------------------------------------------

    def coordinate(self, effect: Coordinate, resume: Resume, request: Request) -> Any | Parked:
        topic = self._current.image.topics.get(CONSUMER_OFFSETS)
        index = 0 if topic is None else partition_for(effect.group_id, len(topic.partitions))
        shard = self._shards.get(index)
        if shard is None:
            is_loading = index in self._loading
            error = _LOADING if is_loading else ErrorCode.not_coordinator
            return refusal(effect.request, error, request.version)
        self._ask(index, shard, effect.request, request, resume)
        return PARKED

    def coordinate_all(
        self, effect: CoordinateAll, resume: Resume, request: Request
    ) -> list[Any] | Parked:
        answers = [refusal(effect.request, _LOADING, request.version) for _ in self._loading]
        shards = list(self._shards.items())
        if not shards:
            return answers
        expected = len(answers) + len(shards)

        def collect(answer: Any) -> None:
            answers.append(answer)
            if len(answers) == expected:
                resume(answers)

        for index, shard in shards:
            self._ask(index, shard, effect.request, request, collect)
        return PARKED

    def _ask(
        self, index: int, shard: GroupShard, message: Any, request: Request, resume: Resume
    ) -> None:
        ticket = next(self._tickets)
        self._waiting[ticket] = resume
        client = ClientInfo(request.client_id, request.client_host)
        effects = shard.handle(message, client, request.version, ticket, self._clock.now)
        self._carry_out(index, effects)

    # -- effects of the coordinators ---------------------------------------------------------------

    def _carry_out(self, index: int, effects: list[GroupEffect]) -> None:
        for effect in effects:
            if isinstance(effect, AnswerRequest):
                self._waiting.pop(effect.ticket)(effect.response)
            else:
                self._write(index, effect)
        self._set_alarm(index)

    def _write(self, index: int, write: AppendRecords) -> None:
        wall = self._clock.wall
        batch = build_batch([Record(key, value, wall) for key, value in write.records])
        append = AppendBatches(
            [
                PartitionAppend(
                    TopicPartition(CONSUMER_OFFSETS, index), memoryview(bytearray(batch))
                )
            ],
            acks=-1,
            timeout_ms=self._settings.offsets_commit_timeout_ms,
        )
        shard = self._shards.get(index)

        def written(results: list[AppendResult]) -> None:
            if shard is not None and self._shards.get(index) is shard:
                outcome = shard.written(write.write_id, results[0].error, self._clock.now)
                self._carry_out(index, outcome)

        then = self._ready.later(written)
        results = self._partitions.append(append, then, AppendOrigin.COORDINATOR)
        if results is not PARKED:
            then(results)

    def _set_alarm(self, index: int) -> None:
        """Set the coordinator's timer to its deadline, unless the timer fires earlier anyway."""
        shard = self._shards.get(index)
        deadline = shard.next_deadline() if shard is not None else None
        if deadline is None:
            return
        alarm = self._alarms.get(index)
        if alarm is not None:
            if alarm[0] <= deadline:
                return
            alarm[1].cancel()
        self._alarms[index] = (
            deadline,
            self._timers.at(deadline, lambda: self._tick(index)),
        )

    def _tick(self, index: int) -> None:
        self._alarms.pop(index, None)
        shard = self._shards.get(index)
        if shard is not None:
            self._carry_out(index, shard.tick(self._clock.now))


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=settings.offsets_retention_check_interval_ms,
        offsets_commit_timeout_ms=settings.offsets_commit_timeout_ms,
    )
