"""A proxy network between the processes of one machine that can be cut, delayed and slowed down.

Every listener of a node has a proxy address, which the node advertises. All traffic to the node
passes through the proxy in both directions. The nodes do not know about it.
"""

from tidelog.network.conditions import CLIENTS
from tidelog.network.door import Place
from tidelog.network.network import Network, NetworkFailed

__all__ = ["Network", "NetworkFailed", "Place", "CLIENTS"]
