"""A network between processes of this machine that can be cut, held up and slowed down.

Every listener of a node has an address of ours in front of it, and that is the address that others
are told: what they say to the node, and what it says to them, passes through here. The nodes
know nothing of it.
"""

from tidelog.network.conditions import CLIENTS
from tidelog.network.door import Place
from tidelog.network.network import Network, NetworkFailed

__all__ = ["Network", "NetworkFailed", "Place", "CLIENTS"]
