"""Sends the requests of coordinators to other brokers, to this broker, or to the controller."""

from collections.abc import Callable
from typing import Any, Protocol

from tidelog.config.settings import BrokerSettings
from tidelog.coordination.runtime.decision import (
    NoAnswer,
    OutgoingRequest,
    ToBroker,
    ToController,
    ToLeader,
)
from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.coordinators.peer_versions import HighestVersions, PeerVersions
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Channel, Peers, Unanswered, coded
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import Resume


class SubmitToController(Protocol):
    """Sends a request to the active controller."""

    def __call__(self, message: Any, resume: Resume) -> None: ...


class OutgoingRequests:
    def __init__(
        self,
        settings: BrokerSettings,
        peers: Peers,
        ready: ReadyQueue,
        current: CurrentImage,
        submit: SubmitToController,
    ) -> None:
        self._settings = settings
        self._ready = ready
        self._current = current
        self._submit = submit
        self._channels: Channels[NodeId] = Channels(peers)
        self._versions = PeerVersions(settings.request_timeout_ms)

    def send(self, request: OutgoingRequest, done: Callable[[Any], None]) -> None:
        """Send a request; `done` gets the response or `NoAnswer`, from the ready queue."""
        match request.to:
            case ToController():
                self._submit(request.message, self._ready.later(done))
                return
            case ToLeader(topic, partition):
                placed = self._current.image.partition(TopicPartition(topic, partition))
                broker = NO_NODE if placed is None else placed.leader
            case ToBroker(broker):
                pass
        listener = self._settings.inter_broker_listener_name
        endpoint = broker_endpoint(self._current.image, broker, listener)
        if endpoint is None:
            self._ready.add((done, (NoAnswer(f"broker {broker} is not known"),)))
            return
        channel = self._channels.get(broker, (endpoint.host, endpoint.port))
        if request.lowest_version is None:
            self._send(request, request.version, channel, done)
            return

        def found(highest: HighestVersions | Unanswered) -> None:
            if isinstance(highest, Unanswered):
                self._ready.add((done, (NoAnswer(highest.reason),)))
                return
            version = min(request.version, highest.get(request.message.__api_key__, -1))
            if version < (request.lowest_version or 0):
                unsupported = NoAnswer(f"broker {broker} does not support the request")
                self._ready.add((done, (unsupported,)))
                return
            self._send(request, version, channel, done)

        epoch = self._current.image.brokers[broker].epoch
        self._versions.find(broker, epoch, channel, found)

    def _send(
        self, request: OutgoingRequest, version: int, channel: Channel, done: Callable[[Any], None]
    ) -> None:
        encode, decode = coded(request.message, version)

        def answered(answer: Any) -> None:
            done(NoAnswer(answer.reason) if isinstance(answer, Unanswered) else answer)

        channel.request(encode, decode, answered, self._settings.request_timeout_ms)
