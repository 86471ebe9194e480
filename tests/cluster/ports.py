"""Finds free ports for a whole cluster."""

from pathlib import Path

from tidelog.clusters.free_ports import PortBlock
from tidelog.clusters.local_cluster import LocalCluster
from tidelog.model.user_error import UserError

_given: list[PortBlock] = []
"""The reserved blocks; they stay reserved until the process ends, because no test releases them."""


def first_free_port(brokers: int) -> int:
    """The first port of a range in which all ports of a cluster of this size are free."""
    while True:
        _given.append(PortBlock())
        first = _given[-1].first
        try:
            LocalCluster(Path("unused"), brokers, first, has_metrics=True).check_ports()
        except UserError:
            continue
        return first
