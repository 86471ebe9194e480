"""Ports for a whole cluster: brokers count on from the first, all others are elsewhere."""

from pathlib import Path

from tidelog.clusters.free_ports import PortBlock
from tidelog.clusters.local_cluster import LocalCluster
from tidelog.model.user_error import UserError

_given: list[PortBlock] = []
"""To the end of the tests, since a test says nothing when it needs them no longer."""


def first_free_port(brokers: int) -> int:
    """A first port from which a cluster of so many brokers finds all of its ports free."""
    while True:
        _given.append(PortBlock())
        first = _given[-1].first
        try:
            LocalCluster(Path("unused"), brokers, first, has_metrics=True).check_ports()
        except UserError:
            continue
        return first
