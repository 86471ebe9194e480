"""What a cluster says of itself, asked over Kafka's protocol, and waiting until it says so."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from typing import TypeVar

from kio.schema.describe_quorum.v0.request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponsePartition
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog.cli import admin
from tidelog.cli.client import Client
from tidelog.cli.connection import Connection, ConnectionLost
from tidelog.cli.free_ports import HOST
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NO_NODE, NodeId
from tidelog.testing.process import PATIENCE_SECONDS, NodeStuck

POLL_SECONDS = 0.01
ANSWER_SECONDS = 5.0

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")


class ClusterView(ABC):
    """Questions to a cluster whose nodes are known."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """Where clients begin."""

    @abstractmethod
    def port(self, node: NodeId) -> int:
        """Where clients reach the node."""

    def port_to_ask(self, node: NodeId) -> int:
        """Where the kit itself asks the node."""
        return self.port(node)

    @property
    @abstractmethod
    def running(self) -> Iterable[NodeId]:
        """The nodes that can be asked."""

    def ask(
        self,
        request: RequestPayload,
        response: type[R],
        node: NodeId | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> R:
        """Ask this node, or any that runs; each has so many seconds to answer."""
        lost: Exception | None = None
        for one in self.running if node is None else [node]:
            try:
                connection = Connection(HOST, self.port_to_ask(one), seconds)
                try:
                    return connection.ask(request, response)
                finally:
                    connection.close()
            except ConnectionLost as error:
                lost = error
        raise NodeStuck(f"no node answers: {lost}")

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        *,
        assignment: Sequence[Sequence[NodeId]] | None = None,
        **configs: object,
    ) -> None:
        """Create a topic and wait until all of its replicas are in sync.

        `assignment` places the replicas, the preferred leader of each partition first. `configs`
        are the topic's, with `_` for `.`.
        """
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        existed = name in self.wait_for(self.topics, "the topics")
        # A broker that is slow to hear of a creation asks for it again, and is told that it exists.
        with (
            Client(self.bootstrap) as client,
            nullcontext() if existed else admin.topic_may_exist(),
        ):
            admin.create_topic(
                client,
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                assignment=assignment or (),
                configs=settings,
            )
        for index, one in self.wait_for(lambda: self.topics().get(name), name).items():
            self.wait_for_isr(name, index, one.replica_nodes)

    def controller(self) -> NodeId:
        """The active controller."""

        def leader() -> NodeId | None:
            partition = TopicData(
                topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)
            )
            request = DescribeQuorumRequest(topics=(partition,))
            for node in self.running:
                try:
                    answer = self.ask(request, DescribeQuorumResponse, node)
                except NodeStuck:
                    continue
                if answer.error_code is ErrorCode.none:
                    found: NodeId = answer.topics[0].partitions[0].leader_id
                    if found != NO_NODE:
                        return found
            return None

        return self.wait_for(leader, "an active controller")

    def topics(self, node: NodeId | None = None) -> dict[str, dict[int, MetadataResponsePartition]]:
        """Every topic and its partitions, as one node knows them."""
        answer = self._metadata(None, node)
        return {
            topic.name: {one.partition_index: one for one in topic.partitions}
            for topic in answer.topics
            if topic.name is not None
        }

    def brokers_known_to(self, node: NodeId) -> list[NodeId]:
        """The brokers that are up, as one node knows them."""
        return [broker.node_id for broker in self._metadata((), node).brokers]

    def leader_of(self, topic: str, partition: int = 0) -> NodeId:
        """Who leads the partition; waits while nobody does."""

        def leader() -> NodeId | None:
            found = self._partition(topic, partition)
            return None if found is None or found.leader_id == NO_NODE else found.leader_id

        return self.wait_for(leader, f"a leader of {topic}-{partition}")

    def wait_for_no_leader(self, topic: str, partition: int = 0) -> None:
        """Wait until nobody leads the partition."""

        def is_gone() -> bool | None:
            found = self._partition(topic, partition)
            return True if found is None or found.leader_id == NO_NODE else None

        self.wait_for(is_gone, f"the end of the lead of {topic}-{partition}")

    def isr_of(self, topic: str, partition: int = 0) -> frozenset[NodeId]:
        found = self._partition(topic, partition)
        return frozenset() if found is None else frozenset(found.isr_nodes)

    def wait_for_isr(
        self,
        topic: str,
        partition: int = 0,
        members: Collection[NodeId] | None = None,
        *,
        size: int | None = None,
    ) -> frozenset[NodeId]:
        """Wait until the in-sync set is this, or has so many members."""

        found: frozenset[NodeId] = frozenset()

        def isr() -> frozenset[NodeId] | None:
            nonlocal found
            found = self.isr_of(topic, partition)
            as_wanted = members is None or found == frozenset(members)
            return found if as_wanted and (size is None or len(found) == size) else None

        wanted = f"the in-sync replicas of {topic}-{partition}: {members or size}"
        return self.wait_for(isr, lambda: f"{wanted}; last seen: {sorted(found)}")

    def wait_for_replicas(self, topic: str, partition: int, replicas: Sequence[NodeId]) -> None:
        """Wait until a reassignment to these replicas is complete."""

        def are_placed() -> bool | None:
            found = self._partition(topic, partition)
            return True if found and list(found.replica_nodes) == list(replicas) else None

        self.wait_for(are_placed, f"the replicas {replicas} of {topic}-{partition}")

    def wait_for(self, attempt: Callable[[], T | None], what: str | Callable[[], str]) -> T:
        """The first result that is not None; `what` names it, or tells at last what was seen."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            stuck = ""
            try:
                result = attempt()
            except NodeStuck as error:
                result, stuck = None, f" ({error})"
            if result is not None:
                return result
            if time.monotonic() > deadline:
                told = what if isinstance(what, str) else what()
                raise NodeStuck(f"waited in vain for {told}{stuck}")
            time.sleep(POLL_SECONDS)

    def _partition(self, topic: str, partition: int) -> MetadataResponsePartition | None:
        found = self._metadata((topic,), None).topics[0].partitions
        return next((one for one in found if one.partition_index == partition), None)

    def _metadata(self, topics: tuple[str, ...] | None, node: NodeId | None) -> MetadataResponse:
        asked = None
        if topics is not None:
            asked = tuple(MetadataRequestTopic(name=name, topic_id=None) for name in topics)
        request = MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return self.ask(request, MetadataResponse, node)
