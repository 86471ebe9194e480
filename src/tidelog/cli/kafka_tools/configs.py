"""`tidelog configs`: kafka-configs.sh for topics and brokers."""

import re
from typing import NamedTuple

import click

from tidelog.cli import options
from tidelog.client import admin
from tidelog.client.administration.config_admin import (
    Config,
    Source,
    alter_configs,
    describe_configs,
)
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.model.user_error import UserError

ALL_BROKERS = ""
"""The resource name for the defaults of all brokers."""

_ITEM = re.compile(r"(?:\[[^\]]*\]|[^,\[])+")


class Entity(NamedTuple):
    kind: ResourceType
    name: str | None
    """None means all entities of this kind."""

    @property
    def changes(self) -> Source:
        """The config source of values that were set on this entity itself."""
        if self.kind is ResourceType.TOPIC:
            return Source.DYNAMIC_TOPIC_CONFIG
        if self.name == ALL_BROKERS:
            return Source.DYNAMIC_DEFAULT_BROKER_CONFIG
        return Source.DYNAMIC_BROKER_CONFIG

    def __str__(self) -> str:
        if self.name == ALL_BROKERS:
            return "brokers in the cluster"
        return f"{self.kind.name.lower()} {self.name}"


@click.command("configs")
@click.option("--describe", is_flag=True, help="Show the changed keys, or with --all every key.")
@click.option("--alter", is_flag=True, help="Set or delete single values.")
@options.bootstrap_server
@click.option("--topic", metavar="NAME", help="The topic.")
@click.option("--broker", metavar="ID", help="The broker.")
@click.option("--broker-defaults", is_flag=True, help="The defaults of all brokers.")
@click.option("--entity-type", type=click.Choice(["topics", "brokers"]), help="With --entity-name.")
@click.option("--entity-name", metavar="NAME", help="The topic or broker of that type.")
@click.option("--entity-default", is_flag=True, help="The defaults of that type.")
@click.option("--all", "all_", is_flag=True, help="Describe values that are defaults, too.")
@click.option("--add-config", metavar="K=V,K=[V,V]", help="Values to set; lists in brackets.")
@click.option("--delete-config", metavar="K,K", help="Keys to reset to their defaults.")
@options.command_config("--command-config")
def command(
    describe: bool,
    alter: bool,
    bootstrap_server: str,
    all_: bool,
    add_config: str | None,
    delete_config: str | None,
    **named: str | bool | None,
) -> None:
    """Describe and alter configurations, with the flags of kafka-configs.sh."""
    if describe == alter:
        raise click.UsageError("exactly one of --describe and --alter is needed")
    entity = _entity(named)
    with Client(bootstrap_server, tell=options.tell) as client:
        if describe:
            _describe(client, entity, everything=all_)
        else:
            _alter(client, entity, add_config, delete_config)


def _entity(named: dict[str, str | bool | None]) -> Entity:
    """The entity that the options name. The options may have Kafka's long or short form."""
    found = []
    if named["topic"]:
        found.append(Entity(ResourceType.TOPIC, str(named["topic"])))
    if named["broker"]:
        found.append(Entity(ResourceType.BROKER, str(named["broker"])))
    if named["broker_defaults"]:
        found.append(Entity(ResourceType.BROKER, ALL_BROKERS))
    if named["entity_type"]:
        kind = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER}[
            str(named["entity_type"])
        ]
        name = ALL_BROKERS if named["entity_default"] else named["entity_name"]
        found.append(Entity(kind, None if name is None else str(name)))
    if len(found) != 1:
        raise click.UsageError("exactly one of --topic, --broker and --entity-type is needed")
    (entity,) = found
    if entity == (ResourceType.TOPIC, ALL_BROKERS):
        raise click.UsageError("topics have no --entity-default")
    if entity.kind is ResourceType.BROKER and entity.name and not entity.name.isdecimal():
        raise click.UsageError(f"{entity.name!r} is not a broker's id")
    return entity


def _describe(client: Client, entity: Entity, *, everything: bool) -> None:
    for one in _every(client, entity):
        assert one.name is not None
        described = describe_configs(client, one.kind, [one.name], synonyms=True)
        what = "Default" if one.name == ALL_BROKERS else "All" if everything else "Dynamic"
        click.echo(f"{what} configs for {one} are:")
        for config in sorted(described[one.name]):
            if everything or config.source is one.changes:
                click.echo(_line(config))


def _every(client: Client, entity: Entity) -> list[Entity]:
    topics = [topic.name for topic in admin.topics(client)]
    if entity.kind is ResourceType.TOPIC and entity.name is not None and entity.name not in topics:
        raise UserError(f"The topic '{entity.name}' doesn't exist.")
    if entity.name is not None:
        return [entity]
    if entity.kind is ResourceType.TOPIC:
        return [Entity(entity.kind, name) for name in topics]
    brokers = [Entity(entity.kind, str(node)) for node in client.node_ids()]
    return [*brokers, Entity(entity.kind, ALL_BROKERS)]


def _line(config: Config) -> str:
    synonyms = ", ".join(f"{s.source.name}:{s.name}={_shown(s.value)}" for s in config.synonyms)
    sensitive = str(config.is_sensitive).lower()
    return f"  {config.name}={_shown(config.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def _alter(
    client: Client, entity: Entity, add_config: str | None, delete_config: str | None
) -> None:
    if not add_config and not delete_config:
        raise click.UsageError("--alter needs --add-config or --delete-config")
    if entity.name is None:
        raise click.UsageError("--alter needs --entity-name")
    set_to = parse_additions(add_config or "")
    delete = [key.strip() for key in (delete_config or "").split(",") if key.strip()]
    alter_configs(client, entity.kind, entity.name, set_to=set_to, delete=delete)
    if entity.name == ALL_BROKERS:
        click.echo("Completed updating default config for brokers in the cluster.")
    else:
        click.echo(f"Completed updating config for {entity}.")


def parse_additions(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v2,v3]`. The commas in brackets belong to the value."""
    added = {}
    for item in _ITEM.findall(text):
        key, value = options.key_value("--add-config", item)
        added[key] = value.removeprefix("[").removesuffix("]") if value.startswith("[") else value
    return added
