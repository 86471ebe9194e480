"""Members of a classic consumer group: they join, share partitions, read and commit offsets.

In one generation, a partition belongs to one member, whichever coordinators have sent the shares.
"""

from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.sim.checks.scene import Violation
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.clients.workload.client import ClientSurroundings
from tidelog.sim.clients.workload.reading_member import POLL_MS, Commits, ReadingMember

GROUP = "audit"


class GroupMember(ReadingMember):
    group = GROUP

    def __init__(
        self,
        around: ClientSurroundings,
        name: str,
        partitions: tuple[TopicPartition, ...],
        commits: Commits,
    ) -> None:
        super().__init__(around, name, partitions, commits)
        self._member = ""
        self._generation = -1
        self._find()

    @property
    def is_at_work(self) -> bool:
        """Whether the member has an assignment, which may be empty."""
        return self._generation >= 0 and self._talk is not None and not self._talk.is_lost

    # -- joining the group -------------------------------------------------------------------------

    def _connected(self) -> None:
        self._join()

    def _disconnected(self) -> None:
        self._generation = -1

    def _join(self) -> None:
        self._turn += 1
        topics = sorted({partition.topic for partition in self._partitions})
        self._ask(messages.join(GROUP, self._member, topics), self._joined)

    def _joined(self, answer: Any) -> None:
        match answer.error_code:
            case ErrorCode.none:
                self._member, self._generation = answer.member_id, answer.generation_id
                shares: dict[str, list[TopicPartition]] = {}
                if answer.leader == self._member:
                    members = sorted(one.member_id for one in answer.members)
                    shares = {one: [] for one in members}
                    for place, partition in enumerate(self._partitions):
                        shares[members[place % len(members)]].append(partition)
                wish = messages.sync(GROUP, self._generation, self._member, shares)
                self._ask(wish, self._synced)
            case ErrorCode.member_id_required:
                self._member = answer.member_id
                self._join()
            case ErrorCode.unknown_member_id:
                self._member = ""
                self._again()
            case _:
                self._again()

    def _synced(self, answer: Any) -> None:
        if answer.error_code is not ErrorCode.none:
            self._rejoin(answer.error_code)
            return
        mine = messages.partitions_in(answer.assignment)
        promised = dict(self._commits.acknowledged)
        for partition in mine:
            self._check_owner(partition)
        if not mine:
            self._begin({})
            return

        def told(fetched: Any) -> None:
            group = fetched.groups[0]
            found = {
                TopicPartition(topic.name, one.partition_index): one
                for topic in group.topics
                for one in topic.partitions
            }
            errors = {group.error_code, *(one.error_code for one in found.values())}
            if errors != {ErrorCode.none}:
                self._again()
                return
            for partition, one in found.items():
                self._check(partition, one.committed_offset, promised.get(partition, 0))
            self._begin(
                {partition: max(0, found[partition].committed_offset) for partition in mine}
            )

        self._ask(messages.fetch_offsets(GROUP, mine), told, messages.BY_NAME)

    def _check_owner(self, partition: TopicPartition) -> None:
        owner = self._commits.owner(self._generation, partition, self._member)
        if owner != self._member and not self.around.checker.scene.is_beyond:
            raise Violation(
                "a partition has one owner in a generation",
                f"{owner} and {self._member} both own it in generation {self._generation}",
                partition,
            )

    def _rejoin(self, error: ErrorCode) -> None:
        if error in (ErrorCode.unknown_member_id, ErrorCode.illegal_generation):
            self._member = "" if error is ErrorCode.unknown_member_id else self._member
        if error is ErrorCode.rebalance_in_progress and self._talk is not None:
            self._generation = -1
            self._join()
        else:
            self._again()

    # -- sending heartbeats, reading and committing ------------------------------------------------

    def _begin(self, positions: dict[TopicPartition, Offset]) -> None:
        self._positions = positions
        self._beat(self._turn)
        turn = self._turn
        for partition in positions:
            self._poll(partition, lambda: turn == self._turn)

    def _beat(self, turn: int) -> None:
        if turn == self._turn:
            wish = messages.heartbeat(GROUP, self._generation, self._member)
            self._ask(wish, lambda answer: self._beaten(turn, answer))

    def _beaten(self, turn: int, answer: Any) -> None:
        if answer.error_code is ErrorCode.none:
            self.world.after(POLL_MS, lambda: self._beat(turn))
        else:
            self._rejoin(answer.error_code)

    def _committed(self, offsets: dict[TopicPartition, Offset]) -> Any:
        return messages.commit(GROUP, self._generation, self._member, offsets)
