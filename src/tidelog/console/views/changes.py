"""Changes that a page asks for: topics, configurations, leaders, records and offsets.

Each change takes the fields of a JSON body. A missing or wrong field is an error in one sentence.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tidelog.client import admin
from tidelog.client.administration import partition_admin
from tidelog.client.administration.config_admin import alter_configs
from tidelog.client.client import Client
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.config.resource_type import ResourceType
from tidelog.console.views.group_view import reset_offsets
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Header, Record

Fields: TypeAlias = Mapping[str, Any]
Change: TypeAlias = Callable[[Client, Fields], dict[str, Any]]

PREFERRED = 0


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise UserError(f"'{name}' is missing.")
    return value


def _number(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UserError(f"'{name}' must be a whole number.")
    return value


def _texts(fields: Fields, name: str) -> dict[str, str]:
    value = fields.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise UserError(f"'{name}' must be an object of texts.")
    return value


def create_topic(client: Client, fields: Fields) -> dict[str, Any]:
    name = _text(fields, "topic")
    admin.create_topic(
        client,
        name,
        partitions=_number(fields, "partitions"),
        replication_factor=_number(fields, "replicas"),
        assignment=(),
        configs=_texts(fields, "configs"),
    )
    return {"topic": name}


def delete_topic(client: Client, fields: Fields) -> dict[str, Any]:
    name = _text(fields, "topic")
    admin.delete_topics(client, [name])
    return {"topic": name}


def add_partitions(client: Client, fields: Fields) -> dict[str, Any]:
    name = _text(fields, "topic")
    admin.add_partitions(client, [name], _number(fields, "partitions"), {})
    return {"topic": name}


def alter_config(client: Client, fields: Fields) -> dict[str, Any]:
    name, key, value = _text(fields, "topic"), _text(fields, "key"), fields.get("value")
    if value is not None and not isinstance(value, str):
        raise UserError("'value' must be a text, or null for the default.")
    changed = {} if value is None else {key: value}
    removed = [key] if value is None else []
    alter_configs(client, ResourceType.TOPIC, name, set_to=changed, delete=removed)
    return {"topic": name}


def elect(client: Client, fields: Fields) -> dict[str, Any]:
    where = TopicPartition(_text(fields, "topic"), _number(fields, "partition"))
    outcomes = partition_admin.elect_leaders(client, PREFERRED, [where])
    for outcome in outcomes.values():
        if outcome.error not in (ErrorCode.none, ErrorCode.election_not_needed):
            partition_admin.check(outcome.error, outcome.message)
    return {"topic": where.topic}


def produce(client: Client, fields: Fields) -> dict[str, Any]:
    topic = _text(fields, "topic")
    key, value, partition = fields.get("key"), fields.get("value"), fields.get("partition")
    if not all(one is None or isinstance(one, str) for one in (key, value)):
        raise UserError("'key' and 'value' must be texts or null.")
    if topic not in {one.name for one in admin.topics(client)}:
        raise UserError(f"Topic '{topic}' does not exist.")
    headers = tuple(Header(name, text.encode()) for name, text in _texts(fields, "headers").items())
    record = Record(
        None if key is None else key.encode(),
        None if value is None else value.encode(),
        headers=headers,
    )
    chosen = None if partition is None else _number(fields, "partition")
    Producer(client, topic, acks=ACKS_ALL, compression="none").send([record], chosen)
    return {"topic": topic}


def reset(client: Client, fields: Fields) -> dict[str, Any]:
    return reset_offsets(
        client,
        _text(fields, "group"),
        _text(fields, "topic"),
        _text(fields, "to"),
        dry_run=fields.get("dry_run") is not False,
    )


CHANGES: dict[str, Change] = {
    "create-topic": create_topic,
    "delete-topic": delete_topic,
    "add-partitions": add_partitions,
    "alter-config": alter_config,
    "elect": elect,
    "produce": produce,
    "reset-offsets": reset,
}
