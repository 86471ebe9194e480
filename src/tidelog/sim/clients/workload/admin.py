"""An admin client that creates, alters and deletes topics, reassigns partitions and elects leaders.

At the end of a run, acknowledged changes must hold. A created topic exists, and a deleted topic
does not exist.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kio.schema.alter_partition_reassignments.v1.request import (
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, NodeId, TopicPartition
from tidelog.sim.clients.messages import ask, create_topic, delete_topic
from tidelog.sim.clients.workload.client import ClientSurroundings, WorkloadClient

CREATE_PARTITIONS, ALTER_CONFIGS, ELECT_LEADERS, REASSIGN = 37, 44, 43, 45
_TOPIC, _SET = 2, 0
_TIMEOUT = timedelta(seconds=5)
MAX_EXTRA = 4


class Admin(WorkloadClient):
    def __init__(
        self,
        around: ClientSurroundings,
        name: str,
        partitions: tuple[TopicPartition, ...],
        every_ms: Millis,
    ) -> None:
        super().__init__(around, name)
        self.made: dict[str, bool] = {}
        """For each created topic: whether the topic must exist at the end of the run."""
        self._partitions = partitions
        self._every_ms = every_ms
        self._number = 0
        self._act()

    def _act(self) -> None:
        if self.around.is_over:
            return
        match self.dice.below(6):
            case 0:
                self._create()
            case 1:
                self._delete()
            case 2:
                self._grow()
            case 3:
                self._configure()
            case 4:
                self._elect()
            case _:
                self._reassign()
        self.world.after(self._every_ms // 2 + self.dice.below(self._every_ms), self._act)

    def _ask(self, message: Any, then: Callable[[Any], None] = lambda answer: None) -> None:
        host = self.any_host()
        if host is None:
            return
        talk = self.talk_to(host.id)

        def answered(answer: Any) -> None:
            talk.close()
            then(answer)

        talk.begin(message, then=answered)

    def _create(self) -> None:
        if sum(self.made.values()) >= MAX_EXTRA:
            return
        self._number += 1
        name = f"extra-{self._number}"

        def done(answer: Any) -> None:
            if answer is not None and answer.topics[0].error_code is ErrorCode.none:
                self.made[name] = True

        self._ask(create_topic(name, 1 + self.dice.below(2), 3, timeout_ms=5_000), done)

    def _delete(self) -> None:
        name = self._any_made()
        if name is None:
            return
        del self.made[name]

        def done(answer: Any) -> None:
            if answer is not None and answer.responses[0].error_code is ErrorCode.none:
                self.made[name] = False

        self._ask(delete_topic(name), done)

    def _grow(self) -> None:
        name = self._any_made()
        if name is not None:
            topic = CreatePartitionsTopic(name=name, count=3, assignments=None)
            self._ask(
                ask(CREATE_PARTITIONS, topics=(topic,), timeout=_TIMEOUT, validate_only=False)
            )

    def _configure(self) -> None:
        name = self._any_made()
        if name is not None:
            value = AlterableConfig(
                name="retention.ms", config_operation=_SET, value=str(86_400_000 + self._number)
            )
            resource = AlterConfigsResource(
                resource_type=_TOPIC, resource_name=name, configs=(value,)
            )
            self._ask(ask(ALTER_CONFIGS, resources=(resource,), validate_only=False))

    def _elect(self) -> None:
        topic, index = self._any_partition()
        wanted = (TopicPartitions(topic=topic, partitions=(index,)),)
        self._ask(ask(ELECT_LEADERS, election_type=0, topic_partitions=wanted, timeout=_TIMEOUT))

    def _reassign(self) -> None:
        where = self._any_partition()
        host = self.any_host()
        placed = None if host is None or host.node is None else host.node.image.partition(where)
        if placed is None or placed.is_reassigning:
            return
        nodes: list[NodeId] = list(self.cluster.hosts)
        replicas: list[NodeId] = []
        for _ in placed.replicas:
            replicas.append(nodes.pop(self.dice.below(len(nodes))))
        partition = ReassignablePartition(partition_index=where.partition, replicas=tuple(replicas))
        topic = ReassignableTopic(name=where.topic, partitions=(partition,))
        self._ask(
            ask(
                REASSIGN,
                timeout=_TIMEOUT,
                allow_replication_factor_change=True,
                topics=(topic,),
            )
        )

    def _any_partition(self) -> TopicPartition:
        return self._partitions[self.dice.below(len(self._partitions))]

    def _any_made(self) -> str | None:
        there = [name for name, is_there in self.made.items() if is_there]
        return there[self.dice.below(len(there))] if there else None
