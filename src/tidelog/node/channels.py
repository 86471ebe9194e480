"""Keeps channels to other nodes by key, and looks up a broker's endpoint.

A key identifies a peer and a purpose. A channel is opened when its key is first requested. If the
peer's address changes, the next request for the key closes the channel and opens a new one.
"""

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from tidelog.controller.image.image import ClusterImage, Endpoint
from tidelog.model.ids import NodeId
from tidelog.node.peers import ANSWER_BYTES, Channel, Peers, ignore_refusal

Address: TypeAlias = tuple[str, int]
Key = TypeVar("Key")


def broker_endpoint(image: ClusterImage, broker: NodeId, listener: str) -> Endpoint | None:
    """The endpoint of a registered broker on this listener, even if the broker is fenced."""
    registered = image.brokers.get(broker)
    return None if registered is None else registered.endpoints.get(listener)


class Channels(Generic[Key]):
    def __init__(
        self, peers: Peers, answer_bytes: int = ANSWER_BYTES, *, are_controllers: bool = False
    ) -> None:
        self._peers = peers
        security = peers.security
        self._security = security.to_controllers if are_controllers else security.to_brokers
        self._answer_bytes = answer_bytes
        self._by_key: dict[Key, tuple[Address, Channel]] = {}

    def get(
        self, key: Key, address: Address, refused: Callable[[], None] = ignore_refusal
    ) -> Channel:
        """Return the channel of this key, or open one with the callback `refused`."""
        known = self._by_key.get(key)
        if known is not None and known[0] == address:
            return known[1]
        return self.replace(key, address, refused)

    def replace(
        self, key: Key, address: Address, refused: Callable[[], None] = ignore_refusal
    ) -> Channel:
        """Close the channel of this key, if there is one, and open a new one."""
        self.close(key)
        channel = self._peers.channel(*address, refused, self._answer_bytes, self._security)
        self._by_key[key] = (address, channel)
        return channel

    def close(self, key: Key) -> None:
        """Close the channel of this key, if there is one."""
        known = self._by_key.pop(key, None)
        if known is not None:
            known[1].close()
