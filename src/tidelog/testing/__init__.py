"""A real cluster for tests: processes on this machine, to be killed, paused and started again.

with Cluster(brokers=3) as cluster:
    client = SomeKafkaClient(cluster.bootstrap)
    cluster.kill(cluster.leader_of("orders"))
    cluster.wait_for_isr("orders", 0, size=2)
"""

from tidelog.testing.cluster import Cluster
from tidelog.testing.process import NodeProcess, NodeStuck

__all__ = ["Cluster", "NodeProcess", "NodeStuck"]
