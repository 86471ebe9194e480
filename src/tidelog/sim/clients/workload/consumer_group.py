"""Members of a group with the consumer protocol (KIP-848): heartbeats, reconciliation, commits.

A member owns a partition from the heartbeat response that assigns it until the member gives it up,
before it reports so. At any time, a partition has one owner, and so has it in each member epoch.

A member gives up everything if the present coordinator has not confirmed it for `LEASE_MS`. A real
client does not, and may share a partition for a while with its successor, as in Kafka: it cannot
know that it was removed. This member cannot be removed while it owns something.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicPartition
from tidelog.sim.checks.scene import Scene, Violation
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.clients.workload.client import ClientSurroundings
from tidelog.sim.clients.workload.reading_member import POLL_MS, Commits, ReadingMember

GROUP = "ledger"
LEASE_MS: Millis = 4_500
"""Shorter than the session timeout, because clocks drift."""
REVOCATION_MS: Millis = 1_500
"""The longest time that a member needs to give up partitions."""
LATE_MS: Millis = 4_000
"""The longest delay of a commit that a former owner sends."""
LEAVES, DIES = 15, 40
"""One heartbeat in so many ends with the departure, or with the death of the member."""
AWAY_MS: Millis = 4_000

_EXPELLED = (
    ErrorCode.fenced_member_epoch,
    ErrorCode.unknown_member_id,
    ErrorCode.group_id_not_found,
)


class Ownership:
    """Which member owns each partition now, and which one did in each member epoch."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._owners: dict[TopicPartition, str] = {}
        self.commits = Commits()

    def take(self, partition: TopicPartition, member: str, epoch: int) -> None:
        owner = self._owners.setdefault(partition, member)
        if owner != member and not self._scene.is_beyond:
            raise Violation(
                "a partition has one owner at a time",
                f"{member} received it in epoch {epoch}, and {owner} has not given it up",
                partition,
            )
        first = self.commits.owner(epoch, partition, member)
        if first != member and not self._scene.is_beyond:
            raise Violation(
                "a partition has one owner in a member epoch",
                f"{first} and {member} both received it in epoch {epoch}",
                partition,
            )

    def release(self, partitions: Iterable[TopicPartition], member: str) -> None:
        for partition in partitions:
            if self._owners.get(partition) == member:
                del self._owners[partition]

    def is_owned(self, partition: TopicPartition) -> bool:
        return partition in self._owners


class ConsumerGroupMember(ReadingMember):
    group = GROUP
    patience_ms = 3_000
    commit_version = messages.WITH_EPOCH

    def __init__(
        self,
        around: ClientSurroundings,
        name: str,
        partitions: tuple[TopicPartition, ...],
        ownership: Ownership,
    ) -> None:
        super().__init__(around, name, partitions, ownership.commits)
        self._ownership = ownership
        self._life = 0
        """The number of times that the member was started or has lost its membership."""
        self._starts = 0
        self._epoch = 0
        self._owned: set[TopicPartition] = set()
        self._target: set[TopicPartition] = set()
        self._is_reconciling = False
        self._sends_all = True
        self._reports = False
        self._sent_at: Millis = 0
        self._find()

    @property
    def is_at_work(self) -> bool:
        return self._epoch > 0 and self._owned == self._target

    @property
    def _member(self) -> str:
        """The client chooses its id, and a new one whenever it is started."""
        return f"{self.name}-{self._starts}"

    # -- heartbeats --------------------------------------------------------------------------------

    def _connected(self) -> None:
        self._beat(self._turn)

    def _disconnected(self) -> None:
        self._sends_all = True  # a response may be lost

    def _beat(self, turn: int) -> None:
        if turn != self._turn or self._talk is None:
            return
        joins = self._epoch == 0
        sends_all = joins or self._sends_all
        reports = sends_all or self._reports
        topics = sorted({one.topic for one in self._partitions}) if sends_all else None
        owned = None if not reports else {} if joins else self._by_id(self._owned)
        life, sent_at = self._life, self.world.now
        self._reports = False

        def answered(answer: Any) -> None:
            if life == self._life:
                self._beaten(answer, sent_at)
            self.world.after(POLL_MS, lambda: self._beat(turn))

        self._ask(
            messages.consumer_heartbeat(GROUP, self._member, self._epoch, topics, owned), answered
        )

    def _beaten(self, answer: Any, sent_at: Millis) -> None:
        error = answer.error_code
        if error in _EXPELLED:
            self._abandon()
        elif error is not ErrorCode.none:
            self._again()
        else:
            self._sends_all = False
            self._epoch = answer.member_epoch
            if self._asks_the_leader:
                self._sent_at = sent_at
                self.world.after(LEASE_MS, lambda: self._lease_ended(sent_at))
            if answer.assignment is not None:
                self._target = self._by_name(answer.assignment.topic_partitions)
            self._reconcile()
            self._perhaps_go()

    def _lease_ended(self, sent_at: Millis) -> None:
        if sent_at == self._sent_at:
            self._abandon()

    def _abandon(self) -> None:
        """Give up everything at once, and join again."""
        self._life += 1
        self._epoch = 0
        self._give_up(set(self._owned))
        self._target = set()
        self._is_reconciling = False

    # -- reconciliation ----------------------------------------------------------------------------

    def _reconcile(self) -> None:
        """Give up partitions first, then take the new ones."""
        if self._is_reconciling:
            return
        revoked = self._owned - self._target
        if not revoked:
            self._take_new()
            return
        self._is_reconciling = True
        life = self._life

        def revoke() -> None:
            if life == self._life:
                self._is_reconciling = False
                self._reports = True
                gone = self._owned - self._target
                for partition in sorted(gone):
                    self._commit_late(partition)
                self._give_up(gone)
                self._take_new()

        self.world.after(self.dice.below(REVOCATION_MS), revoke)

    def _give_up(self, partitions: set[TopicPartition]) -> None:
        self._ownership.release(sorted(partitions), self._member)
        self._owned -= partitions
        for partition in partitions:
            self._positions.pop(partition, None)

    def _take_new(self) -> None:
        added = sorted(self._target - self._owned)
        for partition in added:
            self._ownership.take(partition, self._member, self._epoch)
        self._owned.update(added)
        self._reports |= bool(added)
        missing = [one for one in sorted(self._owned) if one not in self._positions]
        if missing and self._talk is not None:
            self._fetch_offsets(missing)

    def _fetch_offsets(self, partitions: list[TopicPartition]) -> None:
        life, promised = self._life, dict(self._commits.acknowledged)

        def told(fetched: Any) -> None:
            group = fetched.groups[0]
            if life != self._life or group.error_code is not ErrorCode.none:
                return  # the next heartbeat leads to another attempt
            for topic in group.topics:
                for one in topic.partitions:
                    partition = TopicPartition(topic.name, one.partition_index)
                    if one.error_code is not ErrorCode.none or partition not in self._owned:
                        continue
                    self._check(partition, one.committed_offset, promised.get(partition, 0))
                    if partition not in self._positions:
                        self._begin(partition, max(0, one.committed_offset))

        wish = messages.fetch_offsets(GROUP, partitions, self._member, self._epoch)
        self._ask(wish, told, messages.WITH_EPOCH)

    def _begin(self, partition: TopicPartition, position: int) -> None:
        life = self._life
        self._positions[partition] = position
        self._poll(partition, lambda: life == self._life and partition in self._positions)

    # -- commits -----------------------------------------------------------------------------------

    def _committed(self, offsets: dict[TopicPartition, int]) -> Any:
        return messages.commit(GROUP, self._epoch, self._member, offsets)

    def _commit_late(self, partition: TopicPartition) -> None:
        """Commit a partition that is given up, perhaps after another member owns it."""
        position = self._positions.get(partition)
        if position is None or self.dice.below(2):
            return
        wish = messages.commit(GROUP, self._epoch, self._member, {partition: position})
        coordinator = self._coordinator

        def send() -> None:
            talk = self.talk_to(coordinator)
            promised = self._commits.acknowledged.get(partition, 0)

            def told(answer: Any) -> None:
                talk.close()
                if answer is None:
                    return
                if answer.topics[0].partitions[0].error_code is not ErrorCode.none:
                    return
                # An offset that was acknowledged before this commit was sent must not go back.
                self._check(partition, position, promised)
                self._commits.acknowledge({partition: position})

            talk.begin(wish, messages.WITH_EPOCH, told)

        self.world.after(self.dice.below(LATE_MS), send)

    # -- leaving and dying -------------------------------------------------------------------------

    def _perhaps_go(self) -> None:
        if self.around.is_over:
            return
        if not self.dice.below(DIES):
            self._go()
        elif not self.dice.below(LEAVES):
            leave = messages.consumer_heartbeat(GROUP, self._member, -1)
            talk = self.talk_to(self._coordinator)
            self._go()
            talk.begin(leave, then=lambda _: talk.close())

    def _go(self) -> None:
        """End, and come back as a new member."""
        self._abandon()
        self._turn += 1
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self._starts += 1
        self.world.after(500 + self.dice.below(AWAY_MS), self._find)

    # -- topics ------------------------------------------------------------------------------------

    def _by_id(self, partitions: Iterable[TopicPartition]) -> dict[UUID, list[int]]:
        topics = self.around.checker.scene.image.topics
        found: dict[UUID, list[int]] = {}
        for partition in partitions:
            found.setdefault(topics[partition.topic].topic_id, []).append(partition.partition)
        return found

    def _by_name(self, assigned: Iterable[Any]) -> set[TopicPartition]:
        names = self.around.checker.scene.image.topic_names
        return {
            TopicPartition(names[entry.topic_id], index)
            for entry in assigned
            for index in entry.partitions
        }
