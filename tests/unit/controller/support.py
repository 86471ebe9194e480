"""A small cluster image for decisions, and short functions for requests."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from tidelog.config.settings import BrokerSettings
from tidelog.controller.decide.decide import DecideContext, Decision, decide
from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import (
    TOPIC_RESOURCE,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
    VersionRange,
)
from tidelog.controller.liveness import Liveness

CLUSTER_ID = "q1Sh-9_ISia_zwGINzRvyQ"
TIMEOUT = timedelta(seconds=30)

PROPERTIES = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "logs",
}
SETTINGS = BrokerSettings.from_properties(PROPERTIES)


def settings(properties: Mapping[str, str]) -> BrokerSettings:
    return BrokerSettings.from_properties({**PROPERTIES, **properties})


class CountingDice:
    """Returns 0, 1, 2, ... instead of random numbers and ids."""

    def __init__(self) -> None:
        self._drawn = -1

    def below(self, bound: int) -> int:
        self._drawn += 1
        return self._drawn % bound

    def uuid(self) -> UUID:
        self._drawn += 1
        return UUID(int=0x1000 + self._drawn)


def directory(broker: int) -> UUID:
    return UUID(int=5000 + broker)


def broker(id_: int, **changes: Any) -> BrokerImage:
    values: dict[str, Any] = {
        "id": id_,
        "epoch": 100 + id_,
        "incarnation": UUID(int=200 + id_),
        "endpoints": {"PLAINTEXT": Endpoint("127.0.0.1", 9092 + id_, 0)},
        "fenced": False,
        "features": {
            "metadata.version": VersionRange(7, 27),
            "eligible.leader.replicas.version": VersionRange(0, 1),
        },
        "directories": (directory(id_),),
    }
    return BrokerImage(**{**values, **changes})


def partition(replicas: tuple[int, ...] = (1, 2, 3), **changes: Any) -> PartitionImage:
    values: dict[str, Any] = {
        "replicas": replicas,
        "isr": replicas,
        "leader": replicas[0],
        "leader_epoch": 5,
        "partition_epoch": 7,
        "directories": tuple(directory(replica) for replica in replicas),
    }
    return PartitionImage(**{**values, **changes})


def cluster(
    brokers: Iterable[BrokerImage] | int = 3,
    topics: Mapping[str, PartitionImage | list[PartitionImage]] | None = None,
    configs: Mapping[tuple[int, str], Mapping[str, str]] | None = None,
    *,
    elr: bool = True,
) -> ClusterImage:
    members = [broker(id_ + 1) for id_ in range(brokers)] if isinstance(brokers, int) else brokers
    made: dict[str, TopicImage] = {}
    for number, (name, partitions) in enumerate((topics or {}).items()):
        listed = partitions if isinstance(partitions, list) else [partitions]
        made[name] = TopicImage(name, UUID(int=0xA0 + number), dict(enumerate(listed)))
    features = {"metadata.version": 27}
    if elr:
        features["eligible.leader.replicas.version"] = 1
    return ClusterImage(
        cluster_id=CLUSTER_ID,
        topics=made,
        topic_names={topic.topic_id: name for name, topic in made.items()},
        brokers={member.id: member for member in members},
        configs=configs or {},
        features=features,
        offset=999,
        epoch=3,
    )


def min_isr(topic: str, minimum: int) -> dict[tuple[int, str], dict[str, str]]:
    return {(TOPIC_RESOURCE, topic): {"min.insync.replicas": str(minimum)}}


def context(
    image: ClusterImage,
    *,
    now: int = 10_000,
    using: BrokerSettings = SETTINGS,
    sessions: Liveness | None = None,
) -> DecideContext:
    return DecideContext(
        now=now,
        dice=CountingDice(),
        settings=using,
        next_offset=image.offset + 1,
        sessions=sessions or Liveness(9000),
    )


def ask(image: ClusterImage, request: Any, **changes: Any) -> Decision:
    return decide(image, request, context(image, **changes))


def after(image: ClusterImage, decision: Decision) -> ClusterImage:
    """The image after the decision's records are applied."""
    records = decision.records
    return apply_all(image, records, image.offset + len(records), image.epoch)
