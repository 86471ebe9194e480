"""A small synchronous Kafka client for the command line.

The client finds a cluster through a bootstrap list, keeps one connection per broker, tracks the
leader of each partition, and retries when leadership has moved.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog.client.connection import ANSWER_SECONDS, BrokerConnection, ConnectionLost
from tidelog.client.wait_notice import WaitNotice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.model.user_error import NoBrokerReached, UserError

RETRY_SECONDS = 30.0
CREATE_SECONDS = 10.0
"""How long to wait for a topic that is created on first use."""

PAUSE_SECONDS = 0.1

R = TypeVar("R", bound=ResponsePayload)
T = TypeVar("T")


class Address(NamedTuple):
    host: str
    port: int


class Moved(Exception):
    """The partition has no reachable leader; a retry with fresh metadata may succeed."""


class BrokerNotReached(UserError):
    """A certain broker is down or does not answer."""


def parse_bootstrap(servers: str) -> list[Address]:
    """Parse `host:port,host:port`, in the format of Kafka's tools."""
    addresses = []
    for server in filter(None, (part.strip() for part in servers.split(","))):
        host, colon, port = server.rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UserError(f"--bootstrap-server: {server!r} is not host:port.")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise UserError("--bootstrap-server: at least one host:port is needed.")
    return addresses


def explain(error: ErrorCode, message: str | None = None) -> str:
    """The broker's error message, or the name of the error if there is none."""
    return message or error.name.upper()


class Client:
    """A client of one cluster."""

    def __init__(
        self,
        bootstrap: str,
        answer_seconds: float = ANSWER_SECONDS,
        *,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """During a long wait for a response or a leader, `tell` is called with a sentence."""
        self.bootstrap = parse_bootstrap(bootstrap)
        self.notice = WaitNotice(tell)
        self._answer_seconds = answer_seconds
        self._nodes: dict[NodeId, Address] = {}
        self._connections: dict[Address, BrokerConnection] = {}
        self._leaders: dict[TopicPartition, NodeId] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    # -- Sending requests --------------------------------------------------------------------------

    def ask(self, request: RequestPayload, response: type[R]) -> R:
        """Ask any broker; brokers forward requests that only the controller can handle."""
        reasons: list[str] = []
        for address in dict.fromkeys((*self._connections, *self.bootstrap, *self._nodes.values())):
            try:
                return self._connect(address).ask(request, response)
            except ConnectionLost as lost:
                self._forget(address)
                reasons.append(str(lost))
        raise NoBrokerReached(f"no broker can be reached ({'; '.join(dict.fromkeys(reasons))}).")

    def speaks(self, request: type[RequestPayload]) -> bool:
        """Whether the connected broker, or the first reachable one, supports this request."""
        if not self._connections:
            self.metadata(topics=())
        return next(iter(self._connections.values())).speaks(request)

    def node_ids(self) -> list[NodeId]:
        """The brokers that are up."""
        self.metadata(topics=())
        return sorted(self._nodes)

    def ask_node(self, node: NodeId, request: RequestPayload, response: type[R]) -> R:
        """Ask this broker and no other."""
        if node not in self.node_ids():
            raise BrokerNotReached(f"broker {node} is not up.")
        address = self._nodes[node]
        try:
            return self._connect(address).ask(request, response)
        except ConnectionLost as lost:
            self._forget(address)
            raise BrokerNotReached(f"broker {node} cannot be reached ({lost}).") from None

    def ask_leader(
        self, partition: TopicPartition, request: RequestPayload, response: type[R]
    ) -> R:
        """Ask the partition's leader; raises `Moved` if the leader is unknown or unreachable."""
        leader = self.leader(partition)
        address = self._nodes.get(leader)
        if address is None:
            raise Moved(f"partition {partition} has no leader")
        try:
            return self._connect(address).ask(request, response)
        except ConnectionLost as lost:
            self._forget(address)
            raise Moved(
                f"broker {leader}, which leads partition {partition}, cannot be reached ({lost})"
            ) from None

    def leader(self, partition: TopicPartition) -> NodeId:
        """The partition's leader in the latest metadata."""
        return self._leaders.get(partition, NO_NODE)

    def look_again(self, topic: str, moved: Moved) -> None:
        """After `Moved`: wait briefly, then refresh the metadata."""
        self.notice.waiting(str(moved))
        time.sleep(PAUSE_SECONDS)
        self.metadata((topic,))

    def until_led(self, topic: str, attempt: Callable[[], T]) -> T:
        """Call `attempt` until it no longer raises `Moved`, with fresh metadata each time."""
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                result = attempt()
            except Moved as moved:
                if time.monotonic() > deadline:
                    raise UserError(f"{moved}; gave up after {RETRY_SECONDS:.0f} s.") from None
                self.look_again(topic, moved)
            else:
                self.notice.over()
                return result

    # -- Fetching metadata -------------------------------------------------------------------------

    def metadata(self, topics: tuple[str, ...] | None, *, create: bool = False) -> MetadataResponse:
        """Fetch the metadata of these topics (None means all) and store brokers and leaders."""
        answer = self.ask(
            MetadataRequest(
                topics=None
                if topics is None
                else tuple(MetadataRequestTopic(name=name, topic_id=None) for name in topics),
                allow_auto_topic_creation=create,
                include_topic_authorized_operations=False,
            ),
            MetadataResponse,
        )
        self._nodes = {node.node_id: Address(node.host, node.port) for node in answer.brokers}
        for topic in answer.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name or "", partition.partition_index)
                self._leaders[key] = partition.leader_id
        return answer

    def partitions(self, topic: str, *, create: bool = False) -> list[int]:
        """The topic's partition numbers, once the topic exists and every partition has a leader."""
        deadline = time.monotonic() + (CREATE_SECONDS if create else RETRY_SECONDS)
        while True:
            (found,) = self.metadata((topic,), create=create).topics
            error = found.error_code
            leaderless = [p.partition_index for p in found.partitions if p.leader_id < 0]
            if error is ErrorCode.none and not leaderless:
                self.notice.over()
                return sorted(partition.partition_index for partition in found.partitions)
            is_late = time.monotonic() > deadline
            reason = f"Topic '{topic}': {explain(error)}"
            if error is ErrorCode.unknown_topic_or_partition:
                if not create:
                    raise UserError(f"Topic '{topic}' does not exist.")
                reason = (
                    f"Topic '{topic}' does not exist, and no controller has created it; "
                    "`tidelog cluster describe` shows whether one is active"
                )
            elif error is ErrorCode.none:
                where = f"{topic}-{min(leaderless)}"
                reason = f"partition {where} has no leader; `tidelog explain {where}` shows why"
            if is_late or not (error is ErrorCode.none or error.retriable):
                raise UserError(f"{reason}.")
            self.notice.waiting(reason)
            time.sleep(PAUSE_SECONDS)

    # -- Managing connections ----------------------------------------------------------------------

    def _connect(self, address: Address) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = BrokerConnection(*address, self._answer_seconds, self.notice)
            self._connections[address] = connection
        return connection

    def _forget(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()
