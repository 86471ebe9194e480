"""Moves of replicas between the log directories of a broker, for `tidelog reassign`."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import click

from tidelog.client.administration.partition_admin import describe_log_dirs
from tidelog.client.administration.reassignment_admin import ReplicaPlace, move_replicas
from tidelog.client.client import BrokerNotReached, Client
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

PAUSE_SECONDS = 0.1


class ReplicaDirectories(NamedTuple):
    current: str | None = None
    future: str | None = None
    """The directory that the replica is moving to."""


def replica_directories(
    client: Client, places: Collection[ReplicaPlace]
) -> dict[ReplicaPlace, ReplicaDirectories]:
    """The directories of these replicas. Replicas on unreachable brokers are left out."""
    found: dict[ReplicaPlace, ReplicaDirectories] = {}
    for broker in sorted({place.broker for place in places}):
        wanted = {place.partition for place in places if place.broker == broker}
        own = _on_broker(client, broker, wanted)
        if own is not None:
            none = ReplicaDirectories()
            found |= {ReplicaPlace(broker, where): own.get(where, none) for where in wanted}
    return found


def _on_broker(
    client: Client, broker: NodeId, wanted: Collection[TopicPartition]
) -> dict[TopicPartition, ReplicaDirectories] | None:
    try:
        directories = describe_log_dirs(client, broker)
    except BrokerNotReached:
        return None
    own: dict[TopicPartition, ReplicaDirectories] = {}
    for directory in directories:
        for replica in directory.replicas:
            if replica.partition not in wanted:
                continue
            known = own.get(replica.partition, ReplicaDirectories())
            own[replica.partition] = (
                known._replace(future=directory.path)
                if replica.is_future
                else known._replace(current=directory.path)
            )
    return own


def states(
    targets: Mapping[ReplicaPlace, str], found: Mapping[ReplicaPlace, ReplicaDirectories]
) -> Iterator[str]:
    """A sentence on the move of each replica."""
    for place, target in sorted(targets.items()):
        where, broker = place.partition, place.broker
        if place not in found:
            yield (
                f"Partition {where} cannot be found in any live log directory on broker {broker}."
            )
            continue
        current, future = found[place]
        if current is None:
            yield (
                f"Partition {where} is not found in any live log dir on broker {broker}. There is "
                "likely an offline log directory on the broker."
            )
        elif future is None and current == target:
            yield f"Reassignment of replica {place} completed successfully."
        elif future is None:
            yield (
                f"Partition {where} on broker {broker} is not being moved from log dir {current} "
                f"to {target}."
            )
        elif future == target:
            yield f"Reassignment of replica {place} is still in progress."
        else:
            yield (
                f"Partition {where} on broker {broker} is being moved to log dir {future} "
                f"instead of {target}."
            )


def start_moves(client: Client, targets: Mapping[ReplicaPlace, str], timeout_ms: int) -> None:
    """Start the moves. A broker that does not have the replica yet is asked again."""
    deadline = time.monotonic() + timeout_ms / 1000
    pending = dict(targets)
    while pending:
        for place in _started(client, pending):
            path = pending.pop(place)
            click.echo(
                f"Successfully started moving log directory to {path} for replica "
                f"{place.partition} with broker {place.broker} "
            )
        if pending and time.monotonic() >= deadline:
            names = ",".join(map(str, sorted(pending)))
            plural = "" if len(pending) == 1 else "s"
            raise UserError(
                f"Timed out before log directory move{plural} could be started for: {names}"
            )
        if pending:
            time.sleep(PAUSE_SECONDS)


def _started(client: Client, pending: Mapping[ReplicaPlace, str]) -> list[ReplicaPlace]:
    started = []
    for broker in sorted({place.broker for place in pending}):
        paths = {place.partition: path for place, path in pending.items() if place.broker == broker}
        for where, error in sorted(move_replicas(client, broker, paths).items()):
            place = ReplicaPlace(broker, where)
            if error is ErrorCode.none:
                started.append(place)
            elif error is not ErrorCode.replica_not_available:
                raise UserError(f"Failed to alter dir for {place}")
    return started
