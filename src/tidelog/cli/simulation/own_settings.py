"""The settings for `tidelog whatif`, from options, from a topic, or from defaults."""

from typing import NamedTuple

from tidelog.cli.help.suggestions import did_you_mean
from tidelog.client import admin
from tidelog.client.administration.config_admin import describe_configs
from tidelog.client.client import Client
from tidelog.client.replica_offsets import PAGE
from tidelog.config.resource_type import ResourceType
from tidelog.model.user_error import UserError

MOST_REPLICAS = 5
ASSUMED_FACTOR, ASSUMED_MINIMUM, ASSUMED_ACKS = 3, 2, "all"


class TopicSettings(NamedTuple):
    replication_factor: int
    min_insync_replicas: int
    unclean: bool
    flush: bool


class OwnSettings(NamedTuple):
    factors: tuple[int, ...]
    minimums: tuple[int, ...]
    acks: tuple[str, ...]
    assumed: tuple[str, ...]
    """The settings for which defaults are used, as `key=value`."""


def read_topic(bootstrap: str, topic: str) -> TopicSettings:
    """The settings of a topic on a running cluster."""
    with Client(bootstrap) as client:
        names = [one.name for one in admin.topics(client)]
        if topic not in names:
            raise UserError(f"there is no topic '{topic}'{did_you_mean(topic, names)}")
        (described,) = admin.describe(client, [topic], PAGE)
        configs = describe_configs(client, ResourceType.TOPIC, [topic])[topic]
    values = {one.name: one.value for one in configs}
    factor = max(len(one.replicas) for one in described.partitions)
    if factor > MOST_REPLICAS:
        raise UserError(f"{topic} has {factor} replicas; whatif simulates up to {MOST_REPLICAS}.")
    return TopicSettings(
        factor,
        min(factor, int(values.get("min.insync.replicas") or 1)),
        values.get("unclean.leader.election.enable") == "true",
        values.get("flush.messages") == "1",
    )


def own_settings(
    factors: tuple[int, ...],
    minimums: tuple[int, ...],
    acks: tuple[str, ...],
    topic: TopicSettings | None,
) -> OwnSettings:
    """Take settings that have no option from the topic, and use defaults for the rest."""
    assumed = []
    if not factors:
        factors = (ASSUMED_FACTOR if topic is None else topic.replication_factor,)
        if topic is None:
            assumed.append(f"replication.factor={factors[0]}")
    if not minimums:
        minimum = ASSUMED_MINIMUM if topic is None else topic.min_insync_replicas
        minimums = (min(minimum, *factors),)
        if topic is None:
            assumed.append(f"min.insync.replicas={minimums[0]}")
    if not acks:
        acks = (ASSUMED_ACKS,)
        assumed.append(f"acks={ASSUMED_ACKS}")
    return OwnSettings(factors, minimums, acks, tuple(assumed))
