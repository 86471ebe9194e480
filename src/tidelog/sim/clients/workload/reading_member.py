"""The parts of a group member that all protocols share: its coordinator, reading, and commits.

When a member takes over a partition, the member starts at the last acknowledged commit or later.
There is one exception, as in Kafka. A replaced coordinator may return an earlier offset until it
learns of its replacement. Members then read some records again, but skip none.
"""

from abc import abstractmethod
from collections.abc import Callable
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


class ReadingMember(WorkloadClient):
    group: str
    patience_ms: Millis = PATIENCE_MS
    commit_version: int = messages.BY_NAME

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
        self._positions: dict[TopicPartition, Offset] = {}
        self._talk: Talk | None = None
        self._coordinator: NodeId = NO_NODE
        self._turn = 0
        """The number of attempts to join. Responses from earlier attempts are ignored."""

    @abstractmethod
    def _connected(self) -> None:
        """The coordinator is known, and requests can be sent to it."""

    @abstractmethod
    def _disconnected(self) -> None:
        """The connection to the coordinator was given up."""

    @abstractmethod
    def _committed(self, offsets: dict[TopicPartition, Offset]) -> Any:
        """The request that commits these offsets."""

    # -- the coordinator ---------------------------------------------------------------------------

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
                self.cluster, coordinator.node_id, patience_ms=self.patience_ms, name=self.name
            )
            self._connected()

        talk.begin(messages.find_coordinator(self.group), then=found)

    def _again(self) -> None:
        """Start again with FindCoordinator after a delay."""
        self._turn += 1
        self._disconnected()
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

    @property
    def _asks_the_leader(self) -> bool:
        """Whether the coordinator leads a partition of `__consumer_offsets`."""
        offsets = self.around.checker.scene.image.topics.get(CONSUMER_OFFSETS)
        leaders = {one.leader for one in offsets.partitions.values()} if offsets else set()
        return self._coordinator in leaders

    # -- reading and committing --------------------------------------------------------------------

    def _check(self, partition: TopicPartition, offset: Offset, promised: Offset) -> None:
        if not self._asks_the_leader or self.around.checker.scene.is_beyond:
            return
        if max(0, offset) < promised:
            raise Violation(
                "committed offsets never go back",
                f"{promised} was committed for {partition.topic}-{partition.partition}, and a "
                f"member of the group received {offset}",
                partition,
            )

    def _poll(self, partition: TopicPartition, is_owned: Callable[[], bool]) -> None:
        """Read the partition as long as the member owns it."""
        if not is_owned():
            return
        leader = self.leader_of(partition)
        if leader is not None:
            position = self._positions[partition]
            wish = fetch_from(partition.topic, {partition.partition: position}, epoch=leader.epoch)
            talk = self.talk_to(leader.node)

            def fetched(answer: Any) -> None:
                talk.close()
                if is_owned() and answer is not None:
                    [(_, [found])] = answer.topics
                    self._take(partition, found)

            talk.begin(wish, LEADER_ONLY_FETCH_VERSION, then=fetched)
        self.world.after(POLL_MS, lambda: self._poll(partition, is_owned))

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

        if self._talk is None:
            return  # the member looks for its coordinator; a later commit includes this one
        self._ask(self._committed(offsets), told, self.commit_version)
