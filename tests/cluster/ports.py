"""Ports for a whole cluster: brokers count on from the first, all others are elsewhere."""

import random
from pathlib import Path

from tidelog.cli.errors import CommandFailed
from tidelog.cli.local_cluster import LocalCluster

ATTEMPTS = 100
LOWEST, HIGHEST = 12_000, 20_000
"""Below what the system takes for outgoing connections, the controllers' ports included."""


def first_free_port(brokers: int) -> int:
    """A first port from which a cluster of so many brokers finds all of its ports free."""
    for _ in range(ATTEMPTS):
        port = random.randrange(LOWEST, HIGHEST)
        try:
            LocalCluster(Path("unused"), brokers, port, has_metrics=True).check_ports()
        except CommandFailed:
            continue
        return port
    raise AssertionError("this machine has no free ports")
