"""Partition changes when brokers are fenced, unfenced or shut down.

The batch of records that fences a broker also removes it from every in-sync set, so no image
contains a fenced leader (KIP-841).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from uuid import UUID

from tidelog.controller.configs.effective import topic_value
from tidelog.controller.decide.decision import DecideContext
from tidelog.controller.decide.partition_change import (
    Election,
    ElectionRules,
    Target,
    change_partition,
)
from tidelog.controller.decide.placement import default_directory
from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.features import elr_enabled
from tidelog.controller.image.image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from tidelog.model.ids import NO_NODE, NodeId, TopicId
from tidelog.protocol.metadata.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from tidelog.replication.quorum.state import LogEnd
from tidelog.replication.rules import ISR, QUORUM, CommitRule, majority_of

Located = tuple[TopicImage, int, PartitionImage]


# -- Broker events ---------------------------------------------------------------------------------


def fence(image: ClusterImage, broker: BrokerImage, context: DecideContext) -> list[MetadataRecord]:
    """Fence a broker and remove it from every leadership and in-sync set."""
    records: list[MetadataRecord] = [*leave_isrs(image, broker.id, context)]
    if not broker.fenced:
        records.append(
            BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=1)
        )
    return records


def fence_expired(
    image: ClusterImage, brokers: Iterable[NodeId], context: DecideContext
) -> list[MetadataRecord]:
    """Fence the first of these brokers that is not fenced yet.

    One call fences one broker, because each decision must see the result of the previous decision.
    The caller repeats the call until it returns no records.
    """
    for id_ in brokers:
        broker = image.brokers.get(id_)
        if broker is not None and not broker.fenced:
            return fence(image, broker, context)
    return []


def unfence(
    image: ClusterImage, broker: BrokerImage, context: DecideContext
) -> list[MetadataRecord]:
    """Unfence a broker and elect leaders for partitions that have none."""
    unfenced = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=-1
    )
    leaderless = partitions_where(image, lambda partition: not partition.has_leader)
    changes = _change_all(image, leaderless, context, added=broker.id)
    return [unfenced, *changes]


def begin_shutdown(
    image: ClusterImage, broker: BrokerImage, context: DecideContext
) -> list[MetadataRecord]:
    """Move a broker's leaderships to other replicas before it shuts down."""
    records: list[MetadataRecord] = []
    if not broker.in_controlled_shutdown:
        records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker.id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            )
        )
    return [*records, *leave_isrs(image, broker.id, context)]


def leave_isrs(
    image: ClusterImage, broker: NodeId, context: DecideContext
) -> Iterator[PartitionChangeRecord]:
    """Remove a broker from every in-sync set and elect new leaders for its partitions."""
    touched = partitions_where(image, lambda partition: broker in partition.isr)
    return _change_all(image, touched, context, removed=broker)


def shut_down_uncleanly(
    image: ClusterImage, broker: NodeId, context: DecideContext
) -> list[PartitionChangeRecord]:
    """Remove a broker that stopped uncleanly from all in-sync sets and ELRs (F17, KIP-966)."""
    touched = partitions_where(image, lambda p: broker in p.isr or broker in p.elr)
    return list(_change_all(image, touched, context, removed=broker, unclean=True))


def lose_directories(
    image: ClusterImage, broker: BrokerImage, lost: frozenset[UUID], context: DecideContext
) -> list[MetadataRecord]:
    """Remove the broker's replicas that are in failed log directories from the in-sync sets."""
    remaining = tuple(directory for directory in broker.directories if directory not in lost)
    if remaining == broker.directories:
        return []
    if not remaining:
        return fence(image, broker, context)
    touched = partitions_where(
        image,
        lambda p: broker.id in p.isr and p.directory_of(broker.id) in lost,
    )
    changed = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    return [
        changed,
        *_change_all(image, _under(ISR, image, touched), context, removed=broker.id),
        *_forget_logs(image, broker.id, lost, context),
    ]


def _forget_logs(
    image: ClusterImage, broker: NodeId, lost: frozenset[UUID], context: DecideContext
) -> Iterator[PartitionChangeRecord]:
    """Quorum rule: do not count the broker's replicas in these directories any more (F84)."""
    touched = partitions_where(
        image, lambda p: broker in (*p.isr, *p.elr) and p.directory_of(broker) in lost
    )
    located = _under(QUORUM, image, touched)
    return _change_all(image, located, context, removed=broker, unclean=True)


def _under(rule: CommitRule, image: ClusterImage, located: Iterable[Located]) -> Iterator[Located]:
    return (one for one in located if rule_of(image, one[0].name) is rule)


def leads_anything(image: ClusterImage, broker: NodeId) -> bool:
    return any(True for _ in partitions_where(image, lambda p: p.leader == broker))


# -- Elections by log ends -------------------------------------------------------------------------


def elect_by_log_ends(
    image: ClusterImage, reported: Iterable[tuple[TopicId, int]], context: DecideContext
) -> list[PartitionChangeRecord]:
    """Elect leaders of these partitions, for which a broker has reported its log ends."""
    records: list[PartitionChangeRecord] = []
    for topic_id, index in dict.fromkeys(reported):
        topic = image.topic(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or partition.has_leader:
            continue
        if rule_of(image, topic.name) is QUORUM:
            record = elect(image, (topic, index, partition), Election.ONLINE, context)
            records += [] if record is None else [record]
    return records


# -- Elections on a timer --------------------------------------------------------------------------


def elect_uncleanly(image: ClusterImage, context: DecideContext) -> list[PartitionChangeRecord]:
    """Elect leaders for leaderless partitions whose topics allow unclean elections."""
    leaderless = partitions_where(image, lambda partition: not partition.has_leader)
    allowed = (located for located in leaderless if allows_unclean(image, located[0].name, context))
    records = (elect(image, located, Election.UNCLEAN, context) for located in allowed)
    return [record for record in records if record is not None]


# -- Changes of partitions -------------------------------------------------------------------------


def partitions_where(
    image: ClusterImage, is_meant: Callable[[PartitionImage], bool]
) -> Iterator[Located]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if is_meant(partition):
                yield topic, index, partition


def _change_all(
    image: ClusterImage,
    located: Iterable[Located],
    context: DecideContext,
    *,
    removed: NodeId = NO_NODE,
    added: NodeId = NO_NODE,
    unclean: bool = False,
) -> Iterator[PartitionChangeRecord]:
    """Remove `removed` from the in-sync sets, or elect leaders because `added` may lead now."""
    unclean_shutdown = frozenset({removed}) if unclean else frozenset[NodeId]()
    elections: dict[str, Election] = {}
    for topic, index, partition in located:
        election = elections.get(topic.name)
        if election is None:
            election = elections[topic.name] = election_of(image, topic.name, context)
        target = Target(
            isr=tuple(member for member in partition.isr if member != removed),
            election=election,
            unclean_shutdown=unclean_shutdown,
        )
        rules = rules_for(image, topic, index, partition, context, removed=removed, added=added)
        record = change_partition(topic.topic_id, index, partition, target, rules)
        if record is not None:
            yield record


def elect(
    image: ClusterImage, located: Located, election: Election, context: DecideContext
) -> PartitionChangeRecord | None:
    """Run one election in one partition; returns None if it changes nothing."""
    topic, index, partition = located
    rules = rules_for(image, topic, index, partition, context)
    return change_partition(topic.topic_id, index, partition, Target(election=election), rules)


def rules_for(
    image: ClusterImage,
    topic: TopicImage,
    index: int,
    partition: PartitionImage,
    context: DecideContext,
    *,
    removed: NodeId = NO_NODE,
    added: NodeId = NO_NODE,
) -> ElectionRules:
    """The election rules of a partition, as if `removed` were inactive and `added` were active."""

    def may_lead(broker: NodeId) -> bool:
        if broker in (removed, NO_NODE):
            return False
        if broker != added and not image.is_active(broker):
            return False
        return _is_online(image, broker, partition)

    minimum = topic_value(image, context.settings, topic.name, "min.insync.replicas")
    assert isinstance(minimum, int)
    commit, log_ends = rule_of(image, topic.name), dict[NodeId, LogEnd]()
    if commit is QUORUM:
        minimum = majority_of(partition.replicas)
        reported = context.log_ends.of(image, topic.topic_id, index, partition)
        log_ends = {
            replica: end
            for replica, end in reported.items()
            if replica != removed and _is_online(image, replica, partition)
        }
    return ElectionRules(
        may_lead=may_lead,
        min_isr=min(minimum, len(partition.replicas)),
        elr_enabled=elr_enabled(image),
        directory_of=partial(default_directory, image),
        commit=commit,
        log_ends=log_ends,
    )


def _is_online(image: ClusterImage, broker: NodeId, partition: PartitionImage) -> bool:
    """Whether the replica's directory is online, as last reported by its broker."""
    directory = partition.directory_of(broker)
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and directory in image.brokers[broker].directories


def election_of(image: ClusterImage, topic: str, context: DecideContext) -> Election:
    """The election to hold when a partition of the topic changes.

    Under the quorum rule, an unclean election waits for its timer, so that the brokers can report.
    """
    if rule_of(image, topic) is QUORUM or not allows_unclean(image, topic, context):
        return Election.ONLINE
    return Election.UNCLEAN


def allows_unclean(image: ClusterImage, topic: str, context: DecideContext) -> bool:
    return topic_value(image, context.settings, topic, "unclean.leader.election.enable") is True
