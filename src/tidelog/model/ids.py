"""Ids and offsets, as plain types with Kafka's names that cost nothing at run time."""

from typing import NamedTuple, TypeAlias
from uuid import UUID

NodeId: TypeAlias = int
Offset: TypeAlias = int
LeaderEpoch: TypeAlias = int
BrokerEpoch: TypeAlias = int
ProducerId: TypeAlias = int
Millis: TypeAlias = int
TopicId: TypeAlias = UUID
ConnId: TypeAlias = int

NO_NODE: NodeId = -1
NO_EPOCH: LeaderEpoch = -1
MAX_EPOCH: LeaderEpoch = (1 << 31) - 1
NO_OFFSET: Offset = -1
NO_TIMESTAMP: Millis = -1
NO_PRODUCER: ProducerId = -1

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID: TopicId = UUID(int=1)
ZERO_TOPIC_ID: TopicId = UUID(int=0)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
