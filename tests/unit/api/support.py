"""A small cluster image for requests, and a driver that answers the effects of handlers."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from tidelog.api.handler import Encoded, Handling, Request
from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.api.records.share_sessions import ShareSessions
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import (
    BrokerImage,
    ClusterImage,
    ControllerImage,
    Endpoint,
    PartitionImage,
    TopicImage,
    VersionRange,
)
from tidelog.model.effects import AwaitElections, Pause
from tidelog.model.ids import NodeId
from tidelog.protocol.messages.canonical import canonical_request, canonical_response
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import fields_of, response_class
from tidelog.protocol.messages.versions import lift
from tidelog.security.principal import ANONYMOUS

CLUSTER_ID = "q1Sh-9_ISia_zwGINzRvyQ"
TOPIC_ID = UUID(int=0xAB)
OFFSETS_ID = UUID(int=0xCD)

SETTINGS = BrokerSettings.from_properties(
    {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://:9092,INSIDE://:9192,CONTROLLER://:9093",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": "logs",
    }
)


class CountingDice:
    """Returns 0, 1, 2, ... instead of random numbers."""

    def __init__(self) -> None:
        self._drawn = -1

    def below(self, bound: int) -> int:
        self._drawn += 1
        return self._drawn % bound

    def uuid(self) -> UUID:
        return UUID(int=self.below(1 << 64))


def settings(**properties: str) -> BrokerSettings:
    """The usual settings with these changes; underscores stand for dots."""
    changed = {key.replace("_", "."): value for key, value in properties.items()}
    return BrokerSettings.from_properties({**SETTINGS.raw, **changed})


def broker(
    id_: int, *, fenced: bool = False, listeners: Iterable[str] = ("PLAINTEXT",)
) -> BrokerImage:
    return BrokerImage(
        id=id_,
        epoch=100 + id_,
        incarnation=UUID(int=id_),
        endpoints={name: Endpoint(f"host{id_}", 9091 + id_, 0) for name in listeners},
        rack=f"rack{id_}",
        fenced=fenced,
        features={"metadata.version": VersionRange(7, 27), "group.version": VersionRange(0, 1)},
    )


def partition(
    leader: int = 1, replicas: tuple[int, ...] = (1, 2), **changes: Any
) -> PartitionImage:
    image = PartitionImage(
        replicas=replicas, isr=replicas, leader=leader, leader_epoch=4, partition_epoch=7
    )
    return replace(image, **changes)


def topic(name: str, topic_id: UUID, *partitions: PartitionImage) -> TopicImage:
    return TopicImage(name, topic_id, dict(enumerate(partitions)))


def image(*topics: TopicImage, **changes: Any) -> ClusterImage:
    """Brokers 1 and 2, controller 1, and these topics (default: `orders` with three partitions)."""
    topics = topics or (topic("orders", TOPIC_ID, partition(1), partition(2), partition(1)),)
    made = ClusterImage(
        cluster_id=CLUSTER_ID,
        topics={each.name: each for each in topics},
        topic_names={each.topic_id: each.name for each in topics},
        brokers={1: broker(1), 2: broker(2)},
        controllers={
            1: ControllerImage(1, UUID(int=1), {"CONTROLLER": Endpoint("host1", 9093, 0)})
        },
        features={"metadata.version": 27, "group.version": 1},
        offset=42,
    )
    return replace(made, **changes)


class QuorumAt(NamedTuple):
    """A metadata quorum that is led by this node."""

    leader: int
    kraft_version: int = 0


def request(message: Any, version: int = 99, **changes: Any) -> Request:
    made = Request(
        conn=1,
        version=version,
        client_id="tester",
        client_host="127.0.0.1",
        listener="PLAINTEXT",
        message=message,
        image=image(),
        settings=SETTINGS,
        node_id=1,
        now=1_000,
        fetch_sessions=FetchSessions(10, CountingDice()),
        producer_ids=ProducerIdBlocks(),
        quorum=QuorumAt(leader=1),
        principal=ANONYMOUS,
        authorizer=None,
        share_sessions=ShareSessions(10),
    )
    return replace(made, **changes)


def ask(api_key: int, **fields: Any) -> Any:
    """A request in canonical shape. Fields that are not given count as absent."""
    cls = canonical_request(api_key)
    absent = {field.name: field.absent() for field in fields_of(cls)}
    return cls(**{**absent, **fields})


class Effects:
    """The effects that a handler yields and the results that it gets, in order."""

    def __init__(self, *results: Any) -> None:
        self._results = list(results)
        self.asked: list[Any] = []
        self.gone: tuple[NodeId, ...] = ()
        """The dead brokers that AwaitElections returns; these tests do not wait for elections."""
        self.pauses = 0

    def drive(self, handling: Handling | Any) -> Any:
        """Run a handler to its end, and send it the next result for each effect that it yields.

        If a result is callable, it is called with the effect.
        """
        if not hasattr(handling, "send"):
            return handling
        result: Any = None
        while True:
            try:
                effect = handling.send(result)
            except StopIteration as end:
                assert not self._results, f"never asked for {self._results}"
                return end.value
            if isinstance(effect, AwaitElections):
                result = self.gone
                continue
            if isinstance(effect, Pause):
                self.pauses += 1
                result = None
                continue
            self.asked.append(effect)
            assert self._results, f"no result for {effect}"
            result = self._results.pop(0)
            if callable(result):
                result = result(effect)


def drive(handling: Handling | Any, *results: Any) -> Any:
    """The answer of a handler that gets these results, one per effect."""
    return Effects(*results).drive(handling)


def decoded(answer: Encoded, api_key: int, version: int) -> Any:
    """The answer as a client of that version reads it, in canonical shape."""
    [body] = answer.chunks
    assert isinstance(body, (bytes, bytearray))
    return lift(decode(response_class(api_key, version), body, 0), canonical_response(api_key))
