"""The throttles of reassignments: configurations of the brokers and topics that take part."""

from collections.abc import Collection, Mapping

import click

from tidelog.cli.kafka_tools.reassignment_plan import Assignment, ReassignmentPlan
from tidelog.client.admin import Reassignment
from tidelog.client.administration.config_admin import alter_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.model.ids import NodeId, TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"

PERIODICALLY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)

Moves = dict[TopicPartition, tuple[set[NodeId], set[NodeId]]]
"""The source brokers and the destination brokers of each partition."""


def moves_of(
    ongoing: Mapping[TopicPartition, Reassignment], proposed: Assignment, current: Assignment
) -> Moves:
    """The moves in progress and the proposed moves."""
    moves: Moves = {
        where: (set(one.replicas) - set(one.adding), set(one.adding))
        for where, one in ongoing.items()
    }
    for where, replicas in proposed.items():
        sources = moves[where][0] if where in moves else set(current[where])
        moves[where] = (sources, set(replicas) - sources)
    return moves


def throttle_moves(client: Client, moves: Moves, rate: int) -> None:
    """Limit the traffic of the moves to a rate in bytes per second, on each broker."""
    for topic in sorted({where.topic for where in moves}):
        own = sorted(where for where in moves if where.topic == topic)
        values = {
            key: ",".join(
                sorted(f"{where.partition}:{node}" for where in own for node in moves[where][side])
            )
            for side, key in enumerate((LEADER_REPLICAS, FOLLOWER_REPLICAS))
        }
        alter_configs(client, ResourceType.TOPIC, topic, set_to=values, delete=[])
    rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    for broker in sorted({node for sides in moves.values() for side in sides for node in side}):
        alter_configs(client, ResourceType.BROKER, str(broker), set_to=rates, delete=[])
    click.echo(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_log_dirs(client: Client, brokers: Collection[NodeId], rate: int) -> None:
    """Limit the moves between the log directories of these brokers."""
    for broker in sorted(set(brokers)):
        limit = {LOG_DIRS_RATE: str(rate)}
        alter_configs(client, ResourceType.BROKER, str(broker), set_to=limit, delete=[])
    click.echo(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def clear_throttles(client: Client, plan: ReassignmentPlan) -> None:
    """Remove the throttles of all brokers, and of the topics of the plan."""
    brokers = {*client.node_ids(), *(node for _, replicas in plan.targets for node in replicas)}
    named = ",".join(map(str, sorted(brokers)))
    click.echo(f"Clearing broker-level throttles on broker{_s(brokers)} {named}")
    for broker in sorted(brokers):
        rates = [LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE]
        alter_configs(client, ResourceType.BROKER, str(broker), set_to={}, delete=rates)
    topics = plan.topics
    click.echo(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    for topic in topics:
        replicas = [LEADER_REPLICAS, FOLLOWER_REPLICAS]
        alter_configs(client, ResourceType.TOPIC, topic, set_to={}, delete=replicas)


def _s(items: Collection[object]) -> str:
    return "" if len(items) == 1 else "s"
