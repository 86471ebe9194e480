"""A real cluster for tests, whose broker processes a test can kill, pause and cut off.

with Cluster(brokers=3) as cluster:
    client = SomeKafkaClient(cluster.bootstrap)
    cluster.kill(cluster.leader_of("orders"))
    cluster.wait_for_isr("orders", 0, size=2)
"""

from tidelog.client.ledger import Acknowledged, Ledger
from tidelog.clusters.node_process import NodeProcess, NodeStuck
from tidelog.network import CLIENTS
from tidelog.testing.cluster import Cluster, FaultRefused
from tidelog.testing.disk import DiskRefused

__all__ = [
    "Cluster",
    "CLIENTS",
    "NodeProcess",
    "NodeStuck",
    "FaultRefused",
    "DiskRefused",
    "Ledger",
    "Acknowledged",
]
