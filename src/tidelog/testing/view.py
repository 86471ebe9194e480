"""Reads the state of a cluster over Kafka's protocol, and waits for a wanted state."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.connection import BrokerConnection, ConnectionLost
from tidelog.clusters.free_ports import HOST
from tidelog.clusters.node_process import PATIENCE_SECONDS, NodeStuck
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NO_NODE, NodeId
from tidelog.model.user_error import UserError

POLL_SECONDS = 0.01
ANSWER_SECONDS = 5.0
SHOWN_PARTITIONS = 10
INTERNAL = "__"
"""The prefix of the names of internal topics."""

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")


class ClusterView(ABC):
    """Reads the state of a cluster. A subclass provides its nodes and their ports."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """The addresses of all brokers, for clients."""

    @abstractmethod
    def port(self, node: NodeId) -> int:
        """The port of the node for clients."""

    def port_to_ask(self, node: NodeId) -> int:
        """The port of the node to which this class sends its own requests."""
        return self.port(node)

    @property
    @abstractmethod
    def running(self) -> Iterable[NodeId]:
        """The nodes that can answer."""

    @property
    def to_ask(self) -> Iterable[NodeId]:
        """The running nodes. Nodes with the newest metadata come first."""
        return self.running

    def ask(
        self,
        request: RequestPayload,
        response: type[R],
        node: NodeId | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> R:
        """Send a request to this node, or to each running node until one answers in time."""
        lost: object = "no node runs that clients can reach"
        for one in self.to_ask if node is None else [node]:
            try:
                connection = BrokerConnection(HOST, self.port_to_ask(one), seconds)
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
        timeout: float | None = None,
        **configs: object,
    ) -> None:
        """Create a topic and wait until its replicas on running nodes know it and are in sync.

        `assignment` lists the replicas of each partition, the preferred leader first. `configs` are
        topic configurations, with `_` for `.`.
        """
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        deadline = _deadline(timeout)
        existed = self._wait_until(deadline, lambda: bool(self._topic(name)), "the topics")

        def is_made() -> bool:
            # After a timeout, this loop or the forwarding broker repeats the request.
            # The controller may then answer TOPIC_ALREADY_EXISTS.
            with (
                self._client() as client,
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
            return True

        self._wait_until(deadline, is_made, f"the creation of {name}")
        self._wait_until(
            deadline,
            lambda: (self._is_in_sync(name) and self._is_known(name)) or None,
            lambda: f"all replicas of {name} to be in sync{self._seen(name)}",
        )

    def delete_topics(self, *names: str, timeout: float | None = None) -> None:
        """Delete these topics, or all topics that are not internal.

        Waits until no running node has them in its metadata.
        """

        def are_gone() -> bool | None:
            known = {name for node in self.running for name in self.topics(node)}
            left = known.intersection(names) if names else _without_internal(known)
            if not left:
                return True
            with self._client() as client:
                try:
                    admin.delete_topics(client, left)
                except admin.RequestRefused as refused:
                    # The topic is already deleted, but a node does not know that yet.
                    if refused.error is not ErrorCode.unknown_topic_or_partition:
                        raise
            return None

        what = f"the deletion of {', '.join(names) or 'all topics'}"
        self.wait_for(are_gone, what, timeout=timeout)

    @contextmanager
    def _client(self) -> Iterator[Client]:
        """A client of the running nodes. A failure raises NodeStuck, so that a wait tries again."""
        known = ",".join(f"{HOST}:{self.port_to_ask(node)}" for node in self.to_ask)
        try:
            with Client(known, ANSWER_SECONDS) as client:
                yield client
        except admin.RequestRefused:
            raise
        except UserError as failed:
            raise NodeStuck(str(failed)) from None

    def _is_in_sync(self, topic: str) -> bool:
        """Whether all replicas are in sync, except on nodes that are down, paused or cut off."""
        found = self._topic(topic)
        awake = set(self.running)
        return bool(found) and all(
            awake.intersection(one.replica_nodes) <= set(one.isr_nodes) for one in found.values()
        )

    def _is_known(self, topic: str) -> bool:
        """Whether all running nodes with a replica have the topic in their metadata.

        The ISR does not show this, because a new partition starts with all replicas in sync, even
        before their nodes know the partition.
        """
        found = self._topic(topic)
        nodes = {node for one in found.values() for node in one.replica_nodes}
        return all(
            self._topic(topic, node).keys() == found.keys()
            for node in nodes.intersection(self.running)
        )

    def controller(self, *, timeout: float | None = None) -> NodeId:
        """The active controller."""

        def leader() -> NodeId | None:
            partition = TopicData(
                topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)
            )
            request = DescribeQuorumRequest(topics=(partition,))
            for node in self.to_ask:
                try:
                    answer = self.ask(request, DescribeQuorumResponse, node)
                except NodeStuck:
                    continue
                if answer.error_code is ErrorCode.none:
                    found: NodeId = answer.topics[0].partitions[0].leader_id
                    if found != NO_NODE:
                        return found
            return None

        return self.wait_for(leader, "an active controller", timeout=timeout)

    def topics(self, node: NodeId | None = None) -> dict[str, dict[int, MetadataResponsePartition]]:
        """Every topic and its partitions, in the metadata of one node."""
        answer = self._metadata(None, node)
        return {
            topic.name: {one.partition_index: one for one in topic.partitions}
            for topic in answer.topics
            if topic.name is not None
        }

    def brokers_known_to(self, node: NodeId) -> list[NodeId]:
        """The running brokers, in the metadata of one node."""
        return [broker.node_id for broker in self._metadata((), node).brokers]

    def leader_of(self, topic: str, partition: int = 0, *, timeout: float | None = None) -> NodeId:
        """The leader of the partition; waits while there is no leader."""

        def leader() -> NodeId | None:
            found = self._topic(topic).get(partition)
            return None if found is None or found.leader_id == NO_NODE else found.leader_id

        what = f"a leader of {topic}-{partition}"
        return self.wait_for(leader, lambda: what + self._seen(topic, partition), timeout=timeout)

    def wait_for_no_leader(
        self, topic: str, partition: int = 0, *, timeout: float | None = None
    ) -> None:
        """Wait until the partition has no leader."""

        def is_gone() -> bool | None:
            found = self._topic(topic).get(partition)
            return True if found is not None and found.leader_id == NO_NODE else None

        what = f"{topic}-{partition} to have no leader"
        self.wait_for(is_gone, lambda: what + self._seen(topic, partition), timeout=timeout)

    def isr_of(self, topic: str, partition: int = 0) -> frozenset[NodeId]:
        found = self._topic(topic).get(partition)
        return frozenset() if found is None else frozenset(found.isr_nodes)

    def wait_for_isr(
        self,
        topic: str,
        partition: int = 0,
        members: Collection[NodeId] | None = None,
        *,
        size: int | None = None,
        timeout: float | None = None,
    ) -> frozenset[NodeId]:
        """Wait until the ISR has these members or this size, and return the ISR."""
        if members is None and size is None:
            raise ValueError("wait_for_isr: members or size is needed")

        def isr() -> frozenset[NodeId] | None:
            found = self.isr_of(topic, partition)
            as_wanted = members is None or found == frozenset(members)
            return found if as_wanted and (size is None or len(found) == size) else None

        wanted = f"{size} in number" if members is None else _numbers(members)
        what = f"the in-sync replicas of {topic}-{partition} to be {wanted}"
        return self.wait_for(isr, lambda: what + self._seen(topic, partition), timeout=timeout)

    def wait_for_replicas(
        self,
        topic: str,
        partition: int,
        replicas: Sequence[NodeId],
        *,
        timeout: float | None = None,
    ) -> None:
        """Wait until a reassignment to these replicas is complete."""

        def are_placed() -> bool | None:
            found = self._topic(topic).get(partition)
            return True if found and list(found.replica_nodes) == list(replicas) else None

        what = f"the replicas {replicas} of {topic}-{partition}"
        self.wait_for(are_placed, lambda: what + self._seen(topic, partition), timeout=timeout)

    def wait_for(
        self,
        attempt: Callable[[], T | None],
        what: str | Callable[[], str],
        *,
        timeout: float | None = None,
    ) -> T:
        """Repeat the attempt until its result is not None, and return the result.

        After `timeout` seconds, by default two minutes, raise NodeStuck. `what` describes the
        awaited state for the error message.
        """
        return self._wait_until(_deadline(timeout), attempt, what)

    def _wait_until(
        self, deadline: float, attempt: Callable[[], T | None], what: str | Callable[[], str]
    ) -> T:
        while True:
            stuck = ""
            try:
                result = attempt()
            except NodeStuck as error:
                result, stuck = None, f" ({error})"
            if result is not None:
                return result
            if time.monotonic() > deadline:
                awaited = what if isinstance(what, str) else what()
                raise NodeStuck(f"timed out waiting for {awaited}{stuck}")
            time.sleep(POLL_SECONDS)

    def _seen(self, topic: str, partition: int | None = None) -> str:
        """The last state of the topic, for the message of a wait that failed."""
        try:
            found = self._topic(topic)
        except NodeStuck:
            return ""
        if not found:
            return f"; there is no topic {topic}"
        if partition is not None and partition not in found:
            return f"; {topic} has no partition {partition}, only {_numbers(found)}"
        shown = sorted(found)[:SHOWN_PARTITIONS] if partition is None else [partition]
        return "; last seen: " + "; ".join(
            f"{topic}-{index} led by {found[index].leader_id}, "
            f"in sync {_numbers(found[index].isr_nodes)}"
            for index in shown
        )

    def _topic(
        self, topic: str, node: NodeId | None = None
    ) -> dict[int, MetadataResponsePartition]:
        """The partitions of the topic; empty if the topic does not exist."""
        found = self._metadata((topic,), node).topics[0].partitions
        return {one.partition_index: one for one in found}

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


def _deadline(timeout: float | None) -> float:
    return time.monotonic() + (PATIENCE_SECONDS if timeout is None else timeout)


def _without_internal(topics: Iterable[str]) -> set[str]:
    return {name for name in topics if not name.startswith(INTERNAL)}


def _numbers(some: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(some)))
