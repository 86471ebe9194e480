"""The view of the cluster that a client has through one listener.

A broker is reachable if it is unfenced and has an endpoint on the client's listener. By Kafka's
rules, the leaders and offline replicas in a response depend on which brokers are reachable.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from tidelog.controller.image.image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
    PartitionImage,
)
from tidelog.model.ids import NO_NODE, NodeId

NO_AUTHORIZED_OPERATIONS = -(2**31)
"""Kafka's value if the client did not request authorized operations."""


class NodeAddress(NamedTuple):
    """A broker's address on one listener."""

    id: NodeId
    host: str
    port: int
    rack: str | None


class ListenerView:
    """The cluster as seen through one listener."""

    __slots__ = ("image", "listener", "nodes")

    def __init__(self, image: ClusterImage, listener: str) -> None:
        self.image = image
        self.listener = listener
        self.nodes = {node.id: node for node in _nodes(image, listener)}
        """The reachable brokers, in order of id."""

    def nodes_with(self, gone: Collection[NodeId]) -> Collection[NodeAddress]:
        """The reachable brokers and the given fenced brokers, in order of id."""
        if not gone:
            return self.nodes.values()
        brokers = (self.image.brokers[id] for id in gone if id in self.image.brokers)
        listed = {node.id: node for node in _on_listener(brokers, self.listener)} | self.nodes
        return [listed[id] for id in sorted(listed)]

    def controller(self, answering: NodeId) -> NodeId:
        """The controller id for clients: the answering broker, which forwards their requests."""
        if answering in self.nodes:
            return answering
        return next(iter(self.nodes), NO_NODE)

    def leader(self, partition: PartitionImage) -> NodeId:
        """The leader, or NO_NODE if it has no endpoint on this listener."""
        broker = self.image.brokers.get(partition.leader)
        return partition.leader if broker and self.listener in broker.endpoints else NO_NODE

    def offline_replicas(self, partition: PartitionImage) -> tuple[NodeId, ...]:
        """Replicas on unreachable brokers or in failed log directories."""
        directories = partition.directories or (UNASSIGNED_DIRECTORY,) * len(partition.replicas)
        return tuple(
            replica
            for replica, directory in zip(partition.replicas, directories, strict=True)
            if replica not in self.nodes or self._has_lost(replica, directory)
        )

    def _has_lost(self, replica: NodeId, directory: UUID) -> bool:
        online = self.image.brokers[replica].directories
        if directory in online:
            return False
        if directory == LOST_DIRECTORY:
            return True
        return bool(online) and directory not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)


def _nodes(image: ClusterImage, listener: str) -> Iterator[NodeAddress]:
    return _on_listener(image.unfenced_brokers(), listener)


def _on_listener(brokers: Iterable[BrokerImage], listener: str) -> Iterator[NodeAddress]:
    for broker in brokers:
        endpoint = broker.endpoints.get(listener)
        if endpoint is not None:
            yield NodeAddress(broker.id, endpoint.host, endpoint.port, broker.rack)
