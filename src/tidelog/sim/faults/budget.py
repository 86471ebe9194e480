"""The fault budget: faults that the protocol must survive. A failure within the budget is a bug.

At any moment the budget allows:

* **Any network fault.** Any number of links may be cut, slow or lossy, in one direction or both.
  Committed records survive. Without a majority, the cluster makes no progress until the network
  heals.
* **Faults of a minority of nodes.** A node is stopped, paused, isolated or given a bad disk only
  while the other working nodes are a majority. Without a majority, the cluster would make no
  progress, but would lose no metadata, because metadata is synced before it is committed. Only a
  blackout stops all nodes.
* **Loss of unsynced data** (power loss, failed fsync, flipped bit), as long as fewer than
  min.insync.replicas replicas of a partition have ended uncleanly. Every committed record is on at
  least min.insync.replicas replicas; under the quorum rule, this number is the majority. A replica
  that ended uncleanly counts until it is in sync again. A killed replica counts as well, because it
  is no longer eligible to lead (KIP-966).
* **Any number of kills**, as long as no replica has lost data. The page cache survives a kill.
* **Any power loss, including a blackout, for a partition that flushes before it acknowledges**
  (flush.messages=1).
* **One bad disk at a time.** A full, read-only or failing disk stops its node or its directory.
* **Damage to any file of one node at a time, while that node is down.** Another node may be damaged
  once the first node is back in sync and has read the metadata again. A flush does not protect a
  file against damage.
* **Clocks that differ and drift**, because they only measure timeouts.

With `Plan.beyond` the budget is unlimited. A leader may then lack committed records only if its
election is marked as unclean.
"""

from collections.abc import Iterator

from tidelog.controller.configs.effective import topic_value
from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage, PartitionImage
from tidelog.model.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from tidelog.replication.rules import QUORUM, majority_of
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

Ends = dict[NodeId, tuple[BrokerEpoch, bool]]
"""For each replica that ended uncleanly: its broker epoch, and whether it lost data."""


class Budget:
    def __init__(self, cluster: SimCluster, *, is_open: bool = False) -> None:
        self._cluster = cluster
        self._is_open = is_open
        self._ends: dict[TopicPartition, Ends] = {}
        self._isolated: set[NodeId] = set()
        self._bad_disks: set[NodeId] = set()
        self._damaged: dict[NodeId, Offset] = {}
        """The metadata offset that each damaged node must reach before another may be damaged."""

    # -- allowed faults ----------------------------------------------------------------------------

    def allows_absence(self, host: SimHost) -> bool:
        """Whether this node works, and the other working nodes are a majority without it."""
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
        """Whether a file of this node may be damaged, even if every write was flushed."""
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
        """Whether all nodes may lose power at once.

        All nodes must be running. Unless the budget is unlimited, every partition must also flush
        before it acknowledges.
        """
        image = self._newest()
        hosts = self._cluster.hosts.values()
        return all(host.is_up and not host.is_paused for host in hosts) and (
            self._is_open or all(_flushes(image, where) for where, _ in self._partitions(image))
        )

    @property
    def majority(self) -> int:
        return len(self._cluster.hosts) // 2 + 1

    # -- past faults -------------------------------------------------------------------------------

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

    # -- which nodes work, and which partitions survive --------------------------------------------

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
        if rule_of(image, where.topic) is QUORUM:
            minimum = majority_of(partition.replicas)
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
    """Whether the node is in sync again, in a later run than the run that ended."""
    broker = image.brokers.get(node)
    return broker is not None and broker.epoch > epoch and node in partition.isr
