"""The clients that the workload of a run defines, and their unfinished work."""

from collections.abc import Iterator, Sequence

from tidelog.model.ids import Millis, TopicPartition
from tidelog.sim.clients.workload.admin import Admin
from tidelog.sim.clients.workload.client import ClientSurroundings
from tidelog.sim.clients.workload.consumer import Consumer
from tidelog.sim.clients.workload.consumer_group import ConsumerGroupMember, Ownership
from tidelog.sim.clients.workload.group import GroupMember
from tidelog.sim.clients.workload.producer import IdempotentProducer, PlainProducer
from tidelog.sim.clients.workload.reading_member import Commits
from tidelog.sim.runs.plan import TopicPlan, Workload

BEFORE: int = 6
"""The number of network delays after which all replicas know that a write is committed."""
AFTER_MS: Millis = 600


class Clients:
    def __init__(
        self, around: ClientSurroundings, workload: Workload, topics: Sequence[TopicPlan]
    ) -> None:
        self._around = around
        self.partitions = tuple(
            TopicPartition(topic.name, index)
            for topic in topics
            for index in range(topic.partitions)
        )
        self._producers = [
            IdempotentProducer(around, f"idempotent-{number}", self._share(number), workload)
            for number in range(workload.idempotent)
        ]
        self._plain = [
            PlainProducer(
                around, f"plain-{number}", self._share(workload.idempotent + number), workload, acks
            )
            for number, acks in enumerate(workload.plain_acks)
        ]
        self._consumers = [
            Consumer(around, f"consumer-{number}", self._share(number))
            for number in range(workload.consumers)
        ]
        commits = Commits()
        self._members = [
            GroupMember(around, f"member-{number}", self.partitions, commits)
            for number in range(workload.group_members)
        ]
        self._ownership = Ownership(around.checker.scene)
        self._consumer_members = [
            ConsumerGroupMember(around, f"consumer-{number}", self.partitions, self._ownership)
            for number in range(workload.consumer_members)
        ]
        self._admin: Admin | None = None
        if workload.admin_every_ms:
            self._admin = Admin(around, "admin", self.partitions, workload.admin_every_ms)

    def _share(self, number: int) -> TopicPartition:
        return self.partitions[number % len(self.partitions)]

    def gather_at(self, moments: Sequence[Millis]) -> None:
        """Write more batches just before and after these times, so that faults can lose records."""
        cluster = self._around.cluster
        world = cluster.world
        dice = world.dice.fork("gathering")
        before = BEFORE * cluster.network.delay_ms
        for moment in moments:
            world.after(max(0, moment - dice.below(before)), self._gather)
            world.after(moment + dice.below(AFTER_MS), self._gather)

    def _gather(self) -> None:
        for sure in self._producers:
            sure.produce_more()
        for plain in self._plain:
            plain.produce_more()

    def finish(self) -> None:
        """Let clients complete pending requests, but start no new requests."""
        self._around.is_over = True

    def missing(self) -> Iterator[tuple[str, TopicPartition | None]]:
        """Yield the work that clients have not completed."""
        scene = self._around.checker.scene
        for producer in self._producers:
            if not producer.is_known:
                yield f"{producer.name} has no producer id", None
            elif producer.pending:
                yield f"{producer.name} waits for {producer.pending} batches", producer.partition
        for consumer in self._consumers:
            end = scene.by_name[consumer.partition].committed_end
            if consumer.position < end:
                yield f"{consumer.name} is at {consumer.position} of {end}", consumer.partition
        for member in self._members:
            if not member.is_at_work:
                yield f"{member.name} has no share of the group's partitions", None
        for consumer_member in self._consumer_members:
            if not consumer_member.is_at_work:
                yield f"{consumer_member.name} is not a member of its group", None
        if self._consumer_members:
            for partition in self.partitions:
                if not self._ownership.is_owned(partition):
                    yield f"{partition.topic}-{partition.partition} has no owner", partition
        if self._admin is not None:
            for name, is_there in self._admin.made.items():
                if (name in scene.image.topics) != is_there:
                    yield f"topic {name} is {'missing' if is_there else 'still there'}", None
