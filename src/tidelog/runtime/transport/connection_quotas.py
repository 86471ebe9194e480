"""Limits the number of connections, by Kafka's settings and by the available descriptors.

`ConnectionQuotas` only counts connections. The module `listeners` accepts connections, and the
module `connections` closes them. As in Kafka, a connection over max.connections waits in the
kernel's queue, and a connection over max.connections.per.ip is closed at once. If the inter-broker
listener is separate from the client listeners, its connections never wait. Instead, connections of
client listeners are closed to make room. Connections of controller listeners are counted
separately, because in Kafka these listeners belong to a separate socket server.
"""

import socket
from collections import Counter
from collections.abc import Collection

from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.descriptors import UNLIMITED, Shares


class ConnectionQuotas:
    def __init__(
        self,
        limits: LimitConnections,
        listeners: Collection[str],
        *,
        controllers: Collection[str] = (),
        inter_broker: str = "",
        shares: Shares = UNLIMITED,
    ) -> None:
        self._controllers = frozenset(controllers)
        clients = [name for name in listeners if name not in self._controllers]
        self._protected = inter_broker if len(clients) > 1 else None
        self._shares = shares
        self._by_listener: Counter[str] = Counter()
        self._by_address: Counter[tuple[bool, str]] = Counter()
        self._controller_total = 0
        self._total = 0
        """Connections, except those of controller listeners."""
        self.limit(limits)

    def limit(self, limits: LimitConnections) -> None:
        """Apply new limits from now on."""
        self._limits = limits
        self._overrides = {
            address: most
            for name, most in limits.per_ip_overrides.items()
            for address in _addresses(name)
        }

    # -- Counting connections ----------------------------------------------------------------------

    def opened(self, listener: str, address: str) -> None:
        self._count(listener, address, 1)

    def closed(self, listener: str, address: str) -> None:
        self._count(listener, address, -1)
        place = listener in self._controllers, address
        if not self._by_address[place]:
            del self._by_address[place]

    def _count(self, listener: str, address: str, change: int) -> None:
        is_controller = listener in self._controllers
        self._by_listener[listener] += change
        self._by_address[is_controller, address] += change
        if is_controller:
            self._controller_total += change
        else:
            self._total += change

    # -- Checking the limits -----------------------------------------------------------------------

    def obstacle(self, listener: str) -> str | None:
        """The reason why this listener must wait until a connection closes, or None."""
        most = self._limits.per_listener.get(listener)
        if most is not None and self._by_listener[listener] >= most:
            return f"listener.name.{listener.lower()}.max.connections is {most}"
        total = self._controller_total if listener in self._controllers else self._total
        if total >= self._limits.total and listener != self._protected:
            return f"max.connections is {self._limits.total}"
        return None

    def lacks_descriptors(self, listener: str) -> bool:
        """Whether one more connection would use descriptors that are reserved for other uses."""
        if listener in self._controllers or listener == self._protected:
            return self._total + self._controller_total >= self._shares.clients + self._shares.peers
        return self._total >= self._shares.clients

    def refusal(self, listener: str, address: str) -> str | None:
        """The reason to close a new connection from this address at once, or None."""
        most = self._overrides.get(address, self._limits.per_ip)
        if self._by_address.get((listener in self._controllers, address), 0) >= most:
            return f"{address} has {most} connections, the limit of max.connections.per.ip"
        return None

    @property
    def excess(self) -> int:
        """How many connections to close because the total exceeds max.connections."""
        return max(0, self._total - self._limits.total)

    def may_be_closed(self, listener: str) -> bool:
        """Whether connections of this listener may be closed to make room for other connections."""
        return listener not in self._controllers and listener != self._protected


def _addresses(name: str) -> set[str]:
    """The addresses of a host name; empty if the name cannot be resolved now."""
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()
