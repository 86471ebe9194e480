"""Which faults the protocol promises to survive, so that within them every failure is a bug.

What is promised, and so what is allowed at any one moment:

* **The network may do anything.** Any number of links may be cut, slow or lossy, one way or both:
  what was committed stays, whoever leads. Without a majority nothing moves until it is mended.
* **A majority of the nodes works.** Metadata is synced before it counts, so losing more would cost
  no data; but a cluster that stands still shows little. So a node is stopped, paused, isolated or
  given a bad disk only while the others are a majority. Only a blackout may take them all.
* **Fewer than min.insync.replicas replicas of a partition end uncleanly before they are back in
  sync, if one of them loses what it had not synced** (power loss, failed fsync, flipped bit). A
  committed record is on at least so many replicas. Who ends uncleanly is not eligible any more
  (KIP-966), also after a mere kill: so every unclean end counts as soon as one of them is lossy.
* **Kills alone may take any number of replicas**: the page cache outlives the process.
* **A partition that flushes before it acknowledges (flush.messages=1) survives any power loss**, a
  blackout too.
* **One bad disk at a time.** A full, read-only or failing disk stops its node or its directory.
* **Any file of one node at a time may be damaged while it is down**, and of another when the first
  is back in sync and has the metadata again; a flush does not help against that.
* **Clocks may differ and drift**: nothing but patience is measured with them.

With `Plan.beyond` the budget is open: then `silent_loss` holds the cluster to saying what it lost.
"""

from collections.abc import Iterator

from tidelog.controller.configs.effective import topic_value
from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage, PartitionImage
from tidelog.model.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

Ends = dict[NodeId, tuple[BrokerEpoch, bool]]
"""Replicas that ended uncleanly, in which epoch of their broker, and whether they lost anything."""


class Budget:
    def __init__(self, cluster: SimCluster, *, is_open: bool = False) -> None:
        self._cluster = cluster
        self._is_open = is_open
        self._ends: dict[TopicPartition, Ends] = {}
        self._isolated: set[NodeId] = set()
        self._bad_disks: set[NodeId] = set()
        self._damaged: dict[NodeId, Offset] = {}
        """Up to where each damaged voter must have the metadata before another may be."""

    # -- what is allowed ---------------------------------------------------------------------------

    def allows_absence(self, host: SimHost) -> bool:
        """Whether the cluster can do without this node for a while."""
        if self._is_open:
            return host.is_up and not host.is_paused
        works = [one for one in self._cluster.hosts.values() if self._works(one)]
        return host in works and len(works) - 1 >= self.majority

    def allows_unclean_end(self, host: SimHost, *, is_lossy: bool) -> bool:
        if not self.allows_absence(host):
            return False
        return self._is_open or all(
            self._survives(where, partition, host.id, is_lossy)
            for where, partition in self._held_by(host.id)
        )

    def allows_bad_disk(self, host: SimHost, *, is_lossy: bool) -> bool:
        return (self._is_open or not self._bad_disks - {host.id}) and self.allows_unclean_end(
            host, is_lossy=is_lossy
        )

    def allows_damage(self, host: SimHost) -> bool:
        """Whether a file of this node may be damaged, which a flush does not help against."""
        return self.allows_absence(host) and (
            self._is_open
            or (
                all(self._has_recovered(node, end) for node, end in self._damaged.items())
                and all(
                    self._survives(where, partition, host.id, is_lossy=True, despite_flush=True)
                    for where, partition in self._held_by(host.id)
                )
            )
        )

    def allows_blackout(self) -> bool:
        """Whether all may lose power at once: every partition syncs before it acknowledges."""
        image = self._newest()
        hosts = self._cluster.hosts.values()
        return all(host.is_up and not host.is_paused for host in hosts) and (
            self._is_open or all(_flushes(image, where) for where, _ in self._partitions(image))
        )

    @property
    def majority(self) -> int:
        return len(self._cluster.hosts) // 2 + 1

    # -- what has happened -------------------------------------------------------------------------

    def ended_uncleanly(self, host: SimHost, *, is_lossy: bool) -> None:
        broker = self._newest().brokers.get(host.id)
        epoch = -1 if broker is None else broker.epoch
        for where, _ in self._held_by(host.id):
            ends = self._ends.setdefault(where, {})
            _, was_lossy = ends.get(host.id, (-1, False))
            ends[host.id] = (epoch, is_lossy or was_lossy)

    def damaged(self, host: SimHost) -> None:
        self._damaged[host.id] = self._newest().offset
        self.ended_uncleanly(host, is_lossy=True)

    def isolated(self, host: SimHost) -> None:
        self._isolated.add(host.id)

    def rejoined(self, host: SimHost) -> None:
        self._isolated.discard(host.id)

    def disk_broke(self, host: SimHost) -> None:
        self._bad_disks.add(host.id)

    def disk_mended(self, host: SimHost) -> None:
        self._bad_disks.discard(host.id)

    # -- inside ------------------------------------------------------------------------------------

    def _works(self, host: SimHost) -> bool:
        return (
            host.is_up
            and not host.is_paused
            and host.id not in self._isolated
            and host.id not in self._bad_disks
        )

    def _has_recovered(self, node: NodeId, end: Offset) -> bool:
        found = self._cluster.hosts[node].node
        return found is not None and found.image.offset >= end

    def _survives(
        self,
        where: TopicPartition,
        partition: PartitionImage,
        node: NodeId,
        is_lossy: bool,
        despite_flush: bool = False,
    ) -> bool:
        image = self._newest()
        if _flushes(image, where) and not despite_flush:
            return True
        ends = self._ends.get(where, {})
        for other, (epoch, _) in list(ends.items()):
            if _is_back(image, partition, other, epoch):
                del ends[other]
        if not is_lossy and not any(lossy for _, lossy in ends.values()):
            return True
        minimum = topic_value(
            image, self._cluster.hosts[node].settings, where.topic, "min.insync.replicas"
        )
        assert isinstance(minimum, int)
        return len({*ends, node}) < min(minimum, len(partition.replicas))

    def _newest(self) -> ClusterImage:
        images = [host.node.image for host in self._cluster.up if host.node is not None]
        return max(images, key=lambda image: image.offset, default=ClusterImage())

    def _held_by(self, node: NodeId) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        for where, partition in self._partitions(self._newest()):
            if node in partition.replicas:
                yield where, partition

    def _partitions(self, image: ClusterImage) -> Iterator[tuple[TopicPartition, PartitionImage]]:
        for name, topic in image.topics.items():
            for index, partition in topic.partitions.items():
                yield TopicPartition(name, index), partition


def _flushes(image: ClusterImage, where: TopicPartition) -> bool:
    return image.config(TOPIC_RESOURCE, where.topic).get("flush.messages") == "1"


def _is_back(
    image: ClusterImage, partition: PartitionImage, node: NodeId, epoch: BrokerEpoch
) -> bool:
    """In the in-sync set again, in a later run than the one that ended."""
    broker = image.brokers.get(node)
    return broker is not None and broker.epoch > epoch and node in partition.isr
