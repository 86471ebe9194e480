"""A proxy network between the processes of one machine. It can cut, delay and slow down links.

Every listener of a node has a proxy address, which the node advertises. All traffic to the node
passes through the proxy in both directions. The nodes do not know that the proxy exists.
"""

from tidelog.network.conditions import CLIENTS
from tidelog.network.network import Network, NetworkFailed
from tidelog.network.proxy_listener import Place

__all__ = ["Network", "NetworkFailed", "Place", "CLIENTS"]
