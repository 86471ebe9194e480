"""The pages of consumer groups: all groups, and the members, offsets and lag of one group."""

from collections.abc import Mapping
from typing import Any

from tidelog.client.administration import group_admin
from tidelog.client.administration.group_description import describe_group
from tidelog.client.administration.group_lag import group_positions
from tidelog.client.client import Client
from tidelog.client.log_offsets import EARLIEST, LATEST, offsets_at
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.model.user_error import UserError


def groups_view(client: Client) -> dict[str, Any]:
    groups = group_admin.consumer_groups(client)
    return {
        "groups": [
            {"name": one.name, "type": one.type, "state": one.state}
            for one in sorted(groups, key=lambda one: one.name)
        ]
    }


def group_view(client: Client, name: str) -> dict[str, Any]:
    described = describe_group(client, name)
    positions = group_positions(client, described)
    return {
        "name": name,
        "state": described.state,
        "assignor": described.assignor,
        "coordinator": described.coordinator.node,
        "members": [
            {
                "id": one.id,
                "client": one.client_id,
                "host": one.host,
                "partitions": len(one.assignment),
            }
            for one in described.members
        ],
        "positions": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "committed": None if one.committed is None else one.committed.offset,
                "end": one.log_end_offset,
                "lag": one.lag,
                "member": None if one.member is None else one.member.client_id,
            }
            for one in positions
        ],
        "lag": sum(one.lag or 0 for one in positions),
    }


def reset_offsets(
    client: Client, name: str, topic: str, to: str, *, dry_run: bool
) -> dict[str, Any]:
    """Move the committed offsets of a topic to `earliest`, `latest`, an offset or a timestamp.

    A timestamp is given as `@` and milliseconds. With `dry_run`, only tells the new offsets.
    """
    partitions = [TopicPartition(topic, number) for number in client.partitions(topic)]
    target = _targets(client, partitions, to)
    before = group_admin.committed_offsets(client, name)
    if not dry_run:
        group_admin.commit_offsets(client, name, target)
    return {
        "offsets": [
            {
                "partition": one.partition,
                "before": before[one].offset if one in before else None,
                "after": target[one],
            }
            for one in partitions
        ],
        "is_done": not dry_run,
    }


def _targets(
    client: Client, partitions: list[TopicPartition], to: str
) -> Mapping[TopicPartition, Offset]:
    ends = _found(client, partitions, LATEST)
    if to == "latest":
        return ends
    starts = _found(client, partitions, EARLIEST)
    if to == "earliest":
        return starts
    try:
        number = int(to.removeprefix("@"))
    except ValueError:
        raise UserError(
            f"'{to}' is not an offset, `earliest`, `latest` or `@` with milliseconds."
        ) from None
    if to.startswith("@"):
        found = offsets_at(client, partitions, number)
        return {
            one: found[one].offset if found[one].offset >= 0 else ends[one] for one in partitions
        }
    return {one: min(max(number, starts[one]), ends[one]) for one in partitions}


def _found(
    client: Client, partitions: list[TopicPartition], which: int
) -> dict[TopicPartition, Offset]:
    found = offsets_at(client, partitions, which)
    for one in partitions:
        if found[one].error is not ErrorCode.none:
            raise UserError(f"partition {one}: {found[one].error.name.upper()}.")
    return {one: found[one].offset for one in partitions}
