"""A cluster of real processes on free ports of this machine, and what it says of itself."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from kio.schema.describe_quorum.v0.request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponsePartition
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog.cli.connection import Connection, ConnectionLost
from tidelog.cli.local_cluster import HOST, on_free_ports
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NO_NODE, NodeId
from tidelog.testing.process import PATIENCE_SECONDS, NodeProcess, NodeStuck

POLL_SECONDS = 0.01
ANSWER_SECONDS = 5.0

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")


class Cluster:
    """Nodes 1..brokers, each broker and controller in one process.

    As a context it starts them all and waits until each takes writes; at the end it kills them. Its
    directory is a temporary one unless given, and is kept, with the logs, when the test failed.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        directory: Path | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._is_temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tidelog-test-"))
        self.layout = on_free_ports(self.directory, brokers, properties)
        self.nodes: dict[NodeId, NodeProcess] = {
            node: self.new_node(node) for node in self.layout.node_ids
        }

    def new_node(self, node: NodeId) -> NodeProcess:
        return NodeProcess(node, self.layout.config(node), self.directory / f"{node}.log")

    def __enter__(self) -> Self:
        try:
            self.format()
            self.start()
        except BaseException:
            self._end(failed=True)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(failed=kind is not None)

    def format(self) -> None:
        """Write the configurations, and give the log directories their identity."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.layout.prepare()

    def _end(self, *, failed: bool) -> None:
        for node in self.nodes.values():
            node.kill()
            if failed:
                node.show_log()
        if failed:
            print(f"-- the cluster is kept in {self.directory}", file=sys.stderr)
        elif self._is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    # -- Where it is -------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return self.layout.bootstrap

    @property
    def bootstrap_controllers(self) -> str:
        """For tools that speak to the controllers themselves."""
        return ",".join(f"{HOST}:{self.controller_port(node)}" for node in self.nodes)

    @property
    def running(self) -> list[NodeId]:
        """The nodes that run and are not paused."""
        return [id for id, node in self.nodes.items() if node.is_running and not node.is_paused]

    def port(self, node: NodeId) -> int:
        return self.layout.port(node)

    def controller_port(self, node: NodeId) -> int:
        return self.layout.controller_port(node)

    def data(self, node: NodeId) -> Path:
        """The node's log directory."""
        return self.layout.data(node)

    # -- Faults ------------------------------------------------------------------------------------

    def start(self, *nodes: NodeId, wait: bool = True) -> None:
        """Start these nodes (none given: all), and wait until they take writes."""
        chosen = nodes or tuple(self.nodes)
        for node in chosen:
            self.nodes[node].start()
        if wait:
            for node in chosen:
                self.nodes[node].await_ready()

    def stop(self, node: NodeId) -> int:
        """A controlled shutdown. -> the exit status."""
        return self.nodes[node].stop()

    def kill(self, node: NodeId) -> None:
        """kill -9."""
        self.nodes[node].kill()

    def pause(self, node: NodeId) -> None:
        """SIGSTOP."""
        self.nodes[node].pause()

    def resume(self, node: NodeId) -> None:
        """SIGCONT."""
        self.nodes[node].resume()

    def restart(self, node: NodeId) -> None:
        """A controlled shutdown, unless it is down already, and a start."""
        self.stop(node)
        self.start(node)

    # -- What it says of itself --------------------------------------------------------------------

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
                connection = Connection(HOST, self.port(one), seconds)
                try:
                    return connection.ask(request, response)
                finally:
                    connection.close()
            except ConnectionLost as error:
                lost = error
        raise NodeStuck(f"no node answers: {lost}")

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

        def isr() -> frozenset[NodeId] | None:
            found = self.isr_of(topic, partition)
            as_wanted = members is None or found == frozenset(members)
            return found if as_wanted and (size is None or len(found) == size) else None

        return self.wait_for(isr, f"the in-sync replicas of {topic}-{partition}: {members or size}")

    def wait_for_replicas(self, topic: str, partition: int, replicas: Sequence[NodeId]) -> None:
        """Wait until a reassignment to these replicas is complete."""

        def are_placed() -> bool | None:
            found = self._partition(topic, partition)
            return True if found and list(found.replica_nodes) == list(replicas) else None

        self.wait_for(are_placed, f"the replicas {replicas} of {topic}-{partition}")

    def wait_for(self, attempt: Callable[[], T | None], what: str) -> T:
        """The first result that is not None."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                result = attempt()
            except NodeStuck:
                result = None
            if result is not None:
                return result
            if time.monotonic() > deadline:
                raise NodeStuck(f"waited in vain for {what}")
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
