"""The pages of a topic and of a partition: replicas, offsets, epochs, and the explanation."""

import time
from typing import Any

from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.epoch_starts import epoch_starts
from tidelog.client.log_offsets import EARLIEST, offsets_at
from tidelog.client.replica_offsets import PartitionOffsets, look
from tidelog.insight.explanation import explain
from tidelog.insight.fact_gathering import gather
from tidelog.insight.wording import INDENT
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Offset, TopicPartition
from tidelog.model.user_error import UserError

EXPLAIN_SECONDS = 3.0
"""How long an explanation is shown before the facts are gathered again."""


def topic_view(client: Client, topic: str) -> dict[str, Any]:
    partitions = look(client, [topic])
    starts = offsets_at(client, [one.partition for one in partitions if one.leader >= 0], EARLIEST)
    return {
        "name": topic,
        "partitions": [
            {
                "number": one.partition.partition,
                "leader": one.leader,
                "high_watermark": one.high_watermark,
                "start": _offset(starts, one.partition),
                "replicas": _replicas(one),
            }
            for one in partitions
        ],
    }


def _offset(found: Any, partition: TopicPartition) -> Offset | None:
    one = found.get(partition)
    return one.offset if one is not None and one.error is ErrorCode.none else None


def _replicas(one: PartitionOffsets) -> list[dict[str, Any]]:
    return [
        {
            "id": replica.node,
            "end": replica.log_end_offset,
            "lag": one.lag(replica),
            "in_sync": replica.is_in_sync,
        }
        for replica in one.replicas
    ]


class PartitionView:
    """One partition over time: epochs are asked for once per epoch, explanations now and then."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self._epoch: LeaderEpoch = -1
        self._epochs: list[tuple[LeaderEpoch, Offset]] = []
        self._explanation: list[dict[str, Any]] = []
        self._explained_at = 0.0
        self._shape: object = None

    def look(self, client: Client) -> dict[str, Any]:
        partition = self._partition
        if partition.topic not in {one.name for one in admin.topics(client)}:
            raise UserError(f"Topic '{partition.topic}' does not exist.")
        found = {one.partition: one for one in look(client, [partition.topic])}
        if partition not in found:
            raise UserError(f"Topic '{partition.topic}' has no partition {partition.partition}.")
        one = found[partition]
        starts = offsets_at(client, [partition], EARLIEST) if one.leader >= 0 else {}
        self._learn_epochs(client)
        self._learn_explanation(client, one)
        return {
            "topic": partition.topic,
            "partition": partition.partition,
            "leader": one.leader,
            "epoch": self._epoch,
            "epochs": self._epochs,
            "start": _offset(starts, partition),
            "high_watermark": one.high_watermark,
            "replicas": _replicas(one),
            "explanation": self._explanation,
        }

    def _learn_epochs(self, client: Client) -> None:
        (topic,) = client.metadata((self._partition.topic,)).topics
        for one in topic.partitions:
            is_ours = one.partition_index == self._partition.partition and one.leader_id >= 0
            if is_ours and one.leader_epoch != self._epoch:
                self._epochs = epoch_starts(client, self._partition, one.leader_epoch)
                self._epoch = one.leader_epoch

    def _learn_explanation(self, client: Client, one: PartitionOffsets) -> None:
        shape = (one.leader, [(replica.node, replica.is_in_sync) for replica in one.replicas])
        now = time.monotonic()
        if shape == self._shape and now - self._explained_at < EXPLAIN_SECONDS:
            return
        (facts,) = gather(client, self._partition.topic, self._partition.partition)
        self._explanation = paragraphs(list(explain(facts)))
        self._shape, self._explained_at = shape, now


def paragraphs(lines: list[str]) -> list[dict[str, Any]]:
    """An explanation as a headline and headings with sentences."""
    found: list[dict[str, Any]] = [{"heading": lines[0], "sentences": []}]
    for line in lines[1:]:
        if line.startswith(INDENT):
            found[-1]["sentences"].append(line.strip())
        elif line:
            found.append({"heading": line, "sentences": []})
    return found
