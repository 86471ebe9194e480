"""A consumer of one partition, which reads records and queries the end offset.

The consumer reports a violation if the end offset is below an offset that it has already read.

Like a real client, the consumer sends the newest leader epoch that it knows, so that a deposed
leader refuses its requests. The consumer compares a reported end offset with the position that it
had when it sent the request. The consumer may have read further since then, because the request may
have waited in the socket of a paused leader.
"""

from typing import Any

from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset, TopicPartition
from tidelog.sim.checks.scene import Violation
from tidelog.sim.clients.messages import LEADER_ONLY_FETCH_VERSION, ask, fetch_from
from tidelog.sim.clients.talk import Talk
from tidelog.sim.clients.workload.client import ClientSurroundings, WorkloadClient
from tidelog.sim.clients.workload.reading import batches_in

LIST_OFFSETS, LATEST = 2, -1
MAX_WAIT_MS: Millis = 500
LOOK_EVERY_MS: Millis = 1_500


class Consumer(WorkloadClient):
    def __init__(self, around: ClientSurroundings, name: str, partition: TopicPartition) -> None:
        super().__init__(around, name)
        self.partition = partition
        self.position: Offset = 0
        self._epoch: LeaderEpoch = 0
        self._talk: Talk | None = None
        self._fetch()
        self._look()

    # -- reading records ---------------------------------------------------------------------------

    def _fetch(self) -> None:
        if self._talk is None or self._talk.is_lost:
            leader = self.leader_of(self.partition)
            if leader is None:
                self.world.after(self.later(), self._fetch)
                return
            self._epoch = max(self._epoch, leader.epoch)
            self._talk = self.talk_to(leader.node)
        topic, index = self.partition
        wish = fetch_from(topic, {index: self.position}, max_wait_ms=MAX_WAIT_MS, epoch=self._epoch)
        self._talk.begin(wish, LEADER_ONLY_FETCH_VERSION, then=self._fetched)

    def _fetched(self, answer: Any) -> None:
        if answer is None:
            self._turn_away()
            return
        [(_, [fetched])] = answer.topics
        if fetched.error is not ErrorCode.none:
            self._refused(fetched.error)
            return
        batches = batches_in(fetched, self.position)
        if batches is None:
            self._turn_away()
            return
        if batches:
            self.around.checker.read(self.partition, batches)
            self.around.history.records_read += batches[-1].last + 1 - self.position
            self.position = batches[-1].last + 1
        self._fetch()

    def _refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.offset_out_of_range:
            ledger = self.around.checker.scene.by_name[self.partition]
            if not ledger.lost:
                raise Violation(
                    "the watermark never moves back",
                    f"offset {self.position} was next for a consumer and is out of range",
                    self.partition,
                )
            self.position = min(self.position, ledger.committed_end)
        self._turn_away()

    def _turn_away(self) -> None:
        """Look up the leader again after a delay."""
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self.world.after(self.later(), self._fetch)

    # -- the end offset ----------------------------------------------------------------------------

    def _look(self) -> None:
        leader = self.leader_of(self.partition)
        if leader is not None:
            self._epoch = max(self._epoch, leader.epoch)
            talk = self.talk_to(leader.node)
            seen = self.position

            def told(answer: Any) -> None:
                talk.close()
                if answer is not None:
                    self._told(answer.topics[0].partitions[0], seen)

            talk.begin(self._question(), then=told)
        self.world.after(LOOK_EVERY_MS + self.dice.below(LOOK_EVERY_MS), self._look)

    def _question(self) -> Any:
        topic, index = self.partition
        partition = ListOffsetsPartition(
            partition_index=index, timestamp=LATEST, current_leader_epoch=self._epoch
        )
        topics = (ListOffsetsTopic(name=topic, partitions=(partition,)),)
        return ask(LIST_OFFSETS, replica_id=-1, isolation_level=0, topics=topics)

    def _told(self, end: Any, seen: Offset) -> None:
        is_lost = self.around.checker.scene.by_name[self.partition].lost
        if end.error_code is ErrorCode.none and end.offset < seen and not is_lost:
            raise Violation(
                "the watermark never moves back",
                f"a consumer that had read up to {seen} received the end offset {end.offset}",
                self.partition,
            )
