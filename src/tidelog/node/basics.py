"""The objects at the bottom of a node, which almost every other part uses."""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.config.settings import BrokerSettings
from tidelog.model.dice import Dice
from tidelog.model.outbound import Outbound
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.partitions.append_checks import Hold
from tidelog.node.peers import Peers
from tidelog.node.quorum.listener import QuorumListener
from tidelog.node.ready import ReadyQueue
from tidelog.node.storage.failed_directories import FailedDirectories
from tidelog.node.storage.storage import Storage


class NodePorts(NamedTuple):
    """The node's callbacks, which its parts call."""

    emit: Callable[[Outbound], None]
    stop: Callable[[str], None]
    """Stops the node for the given reason."""
    hold: Hold
    quorum_listener: QuorumListener


class Basics(NamedTuple):
    """The objects that almost every part of a node uses."""

    settings: BrokerSettings
    dice: Dice
    clock: Clock
    ready: ReadyQueue
    jobs: Jobs
    peers: Peers
    storage: Storage
    failed_directories: FailedDirectories
    current: CurrentImage
    ports: NodePorts
