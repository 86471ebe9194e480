"""Members of a classic consumer group: they join, share partitions, read and commit offsets.

In one generation, a partition belongs to one member, whichever coordinators have sent the shares.
When a member takes over a partition, the member starts at the last acknowledged commit or later.
There is one exception, as in Kafka. A replaced coordinator may return an earlier offset until it
learns of its replacement. Members then read some records again, but skip none.
"""

from typing import Any

from tidelog.api.groups.internal_topics import CONSUMER_OFFSETS
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset, TopicPartition
from tidelog.sim.checks.scene import Violation
from tidelog.sim.clients.messages import LEADER_ONLY_FETCH_VERSION, fetch_from
from tidelog.sim.clients.talk import Talk
from tidelog.sim.clients.workload import group_messages as messages
from tidelog.sim.clients.workload.client import ClientSurroundings, WorkloadClient
from tidelog.sim.clients.workload.reading import batches_in

GROUP = "audit"
POLL_MS: Millis = 1_000
PATIENCE_MS: Millis = 12_000
"""The time after which a member gives up a request. The time is long, because JoinGroup waits for
all members.
"""


class Commits:
    """What the group's members were told: acknowledged commits, and the owners of partitions."""

    def __init__(self) -> None:
        self.acknowledged: dict[TopicPartition, Offset] = {}
        self._owners: dict[tuple[int, TopicPartition], str] = {}

    def owner(self, generation: int, partition: TopicPartition, member: str) -> str:
        """Record that the member owns the partition; returns the first owner in the generation."""
        return self._owners.setdefault((generation, partition), member)

    def acknowledge(self, offsets: dict[TopicPartition, Offset]) -> None:
        for partition, offset in offsets.items():
            self.acknowledged[partition] = max(offset, self.acknowledged.get(partition, 0))


class GroupMember(WorkloadClient):
    def __init__(
        self,
        around: ClientSurroundings,
        name: str,
        partitions: tuple[TopicPartition, ...],
        commits: Commits,
    ) -> None:
        super().__init__(around, name)
        self._partitions = partitions
        self._commits = commits
        self._member = ""
        self._generation = -1
        self._positions: dict[TopicPartition, Offset] = {}
        self._talk: Talk | None = None
        self._coordinator: NodeId = NO_NODE
        self._turn = 0
        """The number of attempts to join. Responses from earlier attempts are ignored."""
        self._find()

    @property
    def is_at_work(self) -> bool:
        """Whether the member has an assignment, which may be empty."""
        return self._generation >= 0 and self._talk is not None and not self._talk.is_lost

    # -- joining the group -------------------------------------------------------------------------

    def _find(self) -> None:
        host = self.any_host()
        if host is None:
            self._again()
            return
        talk = self.talk_to(host.id)

        def found(answer: Any) -> None:
            talk.close()
            coordinator = None if answer is None else answer.coordinators[0]
            if coordinator is None or coordinator.error_code is not ErrorCode.none:
                self._again()
                return
            self._coordinator = coordinator.node_id
            self._talk = Talk(
                self.cluster, coordinator.node_id, patience_ms=PATIENCE_MS, name=self.name
            )
            self._join()

        talk.begin(messages.find_coordinator(GROUP), then=found)

    def _again(self) -> None:
        """Start again with FindCoordinator after a delay."""
        self._turn += 1
        self._generation = -1
        talk, self._talk = self._talk, None
        if talk is not None:
            talk.close()
        self.world.after(4 * self.later(), self._find)

    def _ask(self, message: Any, then: Any, version: int | None = None) -> None:
        turn, talk = self._turn, self._talk
        assert talk is not None

        def answered(answer: Any) -> None:
            if turn != self._turn:
                return
            if answer is None:
                self._again()
            else:
                then(answer)

        talk.begin(message, version, answered)

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

    def _check(self, partition: TopicPartition, offset: Offset, promised: Offset) -> None:
        scene = self.around.checker.scene
        offsets = scene.image.topics.get(CONSUMER_OFFSETS)
        leaders = {one.leader for one in offsets.partitions.values()} if offsets else set()
        if self._coordinator not in leaders or scene.is_beyond:
            return
        if max(0, offset) < promised:
            raise Violation(
                "committed offsets never go back",
                f"{promised} was committed for {partition.topic}-{partition.partition}, and a "
                f"member of the group received {offset}",
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
        for partition in positions:
            self._poll(self._turn, partition)

    def _beat(self, turn: int) -> None:
        if turn == self._turn:
            wish = messages.heartbeat(GROUP, self._generation, self._member)
            self._ask(wish, lambda answer: self._beaten(turn, answer))

    def _beaten(self, turn: int, answer: Any) -> None:
        if answer.error_code is ErrorCode.none:
            self.world.after(POLL_MS, lambda: self._beat(turn))
        else:
            self._rejoin(answer.error_code)

    def _poll(self, turn: int, partition: TopicPartition) -> None:
        if turn != self._turn:
            return
        leader = self.leader_of(partition)
        if leader is not None:
            position = self._positions[partition]
            wish = fetch_from(partition.topic, {partition.partition: position}, epoch=leader.epoch)
            talk = self.talk_to(leader.node)

            def fetched(answer: Any) -> None:
                talk.close()
                if turn == self._turn and answer is not None:
                    [(_, [found])] = answer.topics
                    self._take(partition, found)

            talk.begin(wish, LEADER_ONLY_FETCH_VERSION, then=fetched)
        self.world.after(POLL_MS, lambda: self._poll(turn, partition))

    def _take(self, partition: TopicPartition, fetched: Any) -> None:
        position = self._positions[partition]
        batches = batches_in(fetched, position) if fetched.error is ErrorCode.none else None
        if not batches:
            return
        self.around.checker.read(partition, batches)
        self.around.history.records_read += batches[-1].last + 1 - position
        self._positions[partition] = batches[-1].last + 1
        self._commit({partition: batches[-1].last + 1})

    def _commit(self, offsets: dict[TopicPartition, Offset]) -> None:
        def told(answer: Any) -> None:
            errors = {one.error_code for topic in answer.topics for one in topic.partitions}
            if errors == {ErrorCode.none}:
                self._commits.acknowledge(offsets)
            elif ErrorCode.not_coordinator in errors:
                self._again()

        wish = messages.commit(GROUP, self._generation, self._member, offsets)
        self._ask(wish, told, messages.BY_NAME)
