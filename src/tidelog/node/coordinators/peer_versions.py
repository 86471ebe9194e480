"""The versions of requests that other brokers support.

A broker is asked once per registration, with ApiVersions, as in Kafka. A broker that is upgraded
registers again, and is asked again.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from tidelog.model.ids import BrokerEpoch, Millis, NodeId
from tidelog.node.peers import Channel, Unanswered, coded

HighestVersions: TypeAlias = Mapping[int, int]
"""The highest supported version of each API, by its key."""

_REQUEST = ApiVersionsRequest(client_software_name="tidelog", client_software_version="unknown")
_REQUEST_VERSION = 3
"""The oldest version whose answer every broker with this registration can decode."""


class PeerVersions:
    def __init__(self, timeout_ms: Millis) -> None:
        self._timeout_ms = timeout_ms
        self._known: dict[NodeId, tuple[BrokerEpoch, HighestVersions]] = {}

    def find(
        self,
        broker: NodeId,
        epoch: BrokerEpoch,
        channel: Channel,
        done: Callable[[HighestVersions | Unanswered], None],
    ) -> None:
        """Find the versions of a broker; `done` may be called within this call."""
        known = self._known.get(broker)
        if known is not None and known[0] == epoch:
            done(known[1])
            return

        def answered(answer: Any) -> None:
            if isinstance(answer, Unanswered):
                done(answer)
                return
            highest = {one.api_key: one.max_version for one in answer.api_keys}
            self._known[broker] = epoch, highest
            done(highest)

        encode, decode = coded(_REQUEST, _REQUEST_VERSION)
        channel.request(encode, decode, answered, self._timeout_ms)
