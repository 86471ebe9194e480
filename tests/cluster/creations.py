"""Creates topics one after the other through any running node, and records every answer."""

import threading
import time
from types import TracebackType
from typing import Self

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from tests.clients.systems import PATIENCE

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster, NodeStuck

PARTITIONS, REPLICAS = 3, 3
AHEAD = 20
"""How many topics the thread creates beyond the number that a test waits for.

This number is small because a restarting node opens every existing log.
"""
MADE = (ErrorCode.none, ErrorCode.topic_already_exists)
"""The error codes after which the topic exists.

TOPIC_ALREADY_EXISTS is one of them, although a test requests each name once. If the controller is
lost or slow, the broker repeats the request, and the first attempt may have created the topic.
"""


def create_topic(cluster: Cluster, name: str, node: NodeId | None = None) -> CreatableTopicResult:
    """Send one CreateTopics and return its result; raise NodeStuck if no node answers."""
    # With a configuration, a topic has several metadata records, so a test can detect a partial
    # creation.
    config = CreatableTopicConfig(name="retention.ms", value="60000")
    topic = CreatableTopic(
        name=name,
        num_partitions=PARTITIONS,
        replication_factor=REPLICAS,
        assignments=(),
        configs=(config,),
    )
    request = CreateTopicsRequest(topics=(topic,))
    return cluster.ask(request, CreateTopicsResponse, node, PATIENCE).topics[0]


def assign_topic(cluster: Cluster, name: str, replicas: list[NodeId]) -> None:
    """Create a topic with one partition on these replicas, and wait until they are in sync."""
    placed = CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(replicas))
    topic = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=(placed,), configs=()
    )
    request = CreateTopicsRequest(topics=(topic,))
    answer = cluster.ask(request, CreateTopicsResponse, seconds=PATIENCE).topics[0]
    assert answer.error_code in MADE, answer
    cluster.wait_for_isr(name, 0, replicas)


class Creations:
    """A thread that creates topics until it is stopped; `acknowledged` lists the created topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._goal = 0
        self.acknowledged: list[str] = []
        self.unanswered: list[str] = []
        self.refused: dict[str, ErrorCode] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "the creations do not come to an end"

    def await_more(self, more: int) -> None:
        """Wait until `more` further topics are acknowledged."""
        self._goal = goal = len(self.acknowledged) + more
        deadline = time.monotonic() + PATIENCE
        while len(self.acknowledged) < goal:
            assert time.monotonic() < deadline, f"{self.refused} {len(self.acknowledged)} of {goal}"
            time.sleep(0.002)

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            if len(self.acknowledged) >= self._goal + AHEAD:
                self._stopping.wait(0.005)
                continue
            name, number = f"stream-{number}", number + 1
            try:
                answer = create_topic(self._cluster, name)
            except NodeStuck:
                self.unanswered.append(name)
                continue
            if answer.error_code in MADE:
                self.acknowledged.append(name)
            else:
                self.refused[name] = answer.error_code
