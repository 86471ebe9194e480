"""Liveness: after the last fault, the cluster recovers within a bounded simulated time.

The cluster has recovered when these conditions hold. Every node is ready, and all nodes hold the
same metadata image. Every partition has a leader, all its replicas are in sync, and their logs are
equal. Reassignments are complete, and no client waits for a response.
"""

from collections.abc import Iterator

from tidelog.controller.image.image import PartitionImage
from tidelog.model.ids import Millis, TopicPartition
from tidelog.sim.checks.scene import CommittedRecords, Scene
from tidelog.sim.machines.cluster import SimCluster

NAME = "liveness"
LIMIT_MS: Millis = 90_000


def missing(cluster: SimCluster, scene: Scene) -> Iterator[tuple[str, TopicPartition | None]]:
    """Yield the conditions that do not hold yet."""
    for host in cluster.hosts.values():
        if host.node is None or not host.node.is_ready:
            yield f"node {host.id} is not ready", None
            return
    images = [host.node.image for host in cluster.hosts.values() if host.node is not None]
    if len({image.offset for image in images}) > 1:
        yield "nodes have different images", None
        return
    for name, topic in images[0].topics.items():
        for index, placed in topic.partitions.items():
            where = TopicPartition(name, index)
            ledger = scene.ledger(where, topic.topic_id)
            for what in _missing_in(scene, ledger, placed):
                yield what, where


def _missing_in(scene: Scene, ledger: CommittedRecords, placed: PartitionImage) -> Iterator[str]:
    called = f"{ledger.partition.topic}-{ledger.partition.partition}"
    if not placed.has_leader:
        yield f"{called} has no leader"
    elif set(placed.isr) != set(placed.replicas):
        yield f"{called} has {list(placed.isr)} in sync of {list(placed.replicas)}"
    elif placed.is_reassigning:
        yield f"{called} is still being reassigned"
    else:
        copies = [scene.copy(node, ledger) for node in placed.replicas]
        if any(copy is None for copy in copies):
            yield f"{called} is not open on every replica"
            return
        for copy in copies:
            if copy is not None and copy.rotten_at is not None:
                yield f"{called} is damaged on node {copy.node} from offset {copy.rotten_at} on"
        ends = {copy.end for copy in copies if copy is not None}
        leader = scene.copy(placed.leader, ledger)
        if len(ends) > 1 or leader is None or leader.high_watermark != leader.end:
            yield f"{called} differs between replicas: its logs end at {sorted(ends)}"
