"""The initialisation of share partitions: state in the share coordinator before any delivery."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from kio.schema.initialize_share_group_state.v0 import request as initialize

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.share.share_group import (
    ShareAssignment,
    ShareGroup,
    SharePartitionSets,
    by_topic,
)
from tidelog.coordination.groups.share.share_heartbeats import share_partitions
from tidelog.coordination.partitioning import partition_for
from tidelog.coordination.runtime.decision import OutgoingRequest, ToLeader
from tidelog.coordination.share_state.share_records import SHARE_STATE_TOPIC
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, TopicId

INITIALIZE_VERSION = 0


class InitializationAsked(NamedTuple):
    """The share coordinator was asked to initialise these share partitions."""

    group_id: str
    partitions: ShareAssignment


class InitializationEnded(NamedTuple):
    group_id: str
    partitions: ShareAssignment


def coordinator_key(group_id: str, topic_id: TopicId, partition: int) -> str:
    """The key by which the share coordinator of a share partition is found, as in Kafka."""
    return f"{group_id}:{urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}:{partition}"


def uninitialized(group: ShareGroup, names: Iterable[str], image: ClusterImage) -> ShareAssignment:
    """The share partitions of these topics without initialised state."""
    return share_partitions(names, image) - group.shares.initialized


def with_initializing(
    group: ShareGroup, partitions: ShareAssignment, image: ClusterImage
) -> SharePartitionSets:
    names = {topic_id: image.topic_names.get(topic_id, "") for topic_id, _ in partitions}
    return replace(
        group.shares,
        initializing=group.shares.initializing | partitions,
        initialized=group.shares.initialized - partitions,
        names={**group.shares.names, **names},
    )


def with_initialized(group: ShareGroup, partitions: ShareAssignment) -> SharePartitionSets:
    return replace(
        group.shares,
        initializing=group.shares.initializing - partitions,
        initialized=group.shares.initialized | partitions,
    )


def without(group: ShareGroup, partitions: ShareAssignment) -> SharePartitionSets:
    """The share partitions of a group without those whose state was deleted."""
    return replace(
        group.shares,
        initializing=group.shares.initializing - partitions,
        initialized=group.shares.initialized - partitions,
    )


def without_topics(group: ShareGroup, image: ClusterImage) -> SharePartitionSets | None:
    """The share partitions without those of deleted topics; None if there are none of them."""
    gone = {topic for topic in group.shares.names if topic not in image.topic_names}
    if not gone:
        return None
    shares = group.shares
    return SharePartitionSets(
        frozenset(one for one in shares.initializing if one[0] not in gone),
        frozenset(one for one in shares.initialized if one[0] not in gone),
        {topic: name for topic, name in shares.names.items() if topic not in gone},
    )


def initialize_requests(
    group_id: str, state_epoch: int, partitions: ShareAssignment, image: ClusterImage
) -> tuple[OutgoingRequest, ...]:
    """One request for each share coordinator; none if `__share_group_state` does not exist."""
    topic = image.topics.get(SHARE_STATE_TOPIC)
    if topic is None:
        return ()
    by_shard: dict[int, set[tuple[TopicId, int]]] = {}
    for topic_id, partition in sorted(partitions):
        key = coordinator_key(group_id, topic_id, partition)
        by_shard.setdefault(partition_for(key, len(topic.partitions)), set()).add(
            (topic_id, partition)
        )
    return tuple(
        OutgoingRequest(
            ToLeader(SHARE_STATE_TOPIC, shard),
            _request(group_id, state_epoch, frozenset(found)),
            INITIALIZE_VERSION,
            InitializationAsked(group_id, frozenset(found)),
        )
        for shard, found in sorted(by_shard.items())
    )


def _request(
    group_id: str, state_epoch: int, partitions: ShareAssignment
) -> initialize.InitializeShareGroupStateRequest:
    topics = tuple(
        initialize.InitializeStateData(
            topic_id=topic.topic_id,
            partitions=tuple(
                initialize.PartitionData(
                    partition=index, state_epoch=state_epoch, start_offset=NO_OFFSET
                )
                for index in topic.partitions
            ),
        )
        for topic in by_topic(partitions)
    )
    return initialize.InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def succeeded(response: Any) -> ShareAssignment:
    """The share partitions that the share coordinator has initialised."""
    return frozenset(
        (result.topic_id, partition.partition)
        for result in response.results
        for partition in result.partitions
        # Another initialisation with a higher epoch came first.
        if partition.error_code in (ErrorCode.none, ErrorCode.fenced_state_epoch)
    )
