"""The first voters of a cluster, which `format` writes for the first leader (KIP-853).

`format` writes the voters to a snapshot with end offset 0. The first leader appends the voters to
the metadata log.
"""

import os
import re
import time
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import click

from tidelog.config.settings import BrokerSettings
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import DYNAMIC, VoterMembership

_INITIAL = re.compile(r"(\d+)@(.+):(\d+):([A-Za-z0-9_-]{22})")


class Choice(NamedTuple):
    """The command line options for the first voters; at most one may be set."""

    standalone: bool
    none: bool
    initial: str | None


@dataclass(frozen=True, slots=True)
class FirstVoters:
    voters: VoterSet | None = None
    is_standalone: bool = False
    my_directory: UUID | None = None
    """The directory id of this node in --initial-controllers."""

    @classmethod
    def chosen(cls, settings: BrokerSettings, choice: Choice) -> "FirstVoters":
        flags = sum((choice.standalone, choice.none, choice.initial is not None))
        if flags > 1:
            raise click.UsageError(
                "choose one of --standalone, --initial-controllers and --no-initial-controllers"
            )
        if settings.controller_quorum_voters and flags:
            raise click.UsageError(
                "controller.quorum.voters names the voters: leave out --standalone, "
                "--initial-controllers and --no-initial-controllers, or unset it"
            )
        if settings.is_controller and not settings.controller_quorum_voters and not flags:
            raise click.UsageError(
                "controller.quorum.voters is not set on this controller: choose one of "
                "--standalone, --initial-controllers and --no-initial-controllers"
            )
        if choice.standalone and not settings.is_controller:
            raise click.UsageError("--standalone is for a controller, and this node is not one")
        if choice.initial is None:
            return cls(is_standalone=choice.standalone)
        voters = _parse(choice.initial, settings.controller_listener_names[0])
        mine = voters.voters.get(settings.node_id)
        if settings.is_controller and mine is None:
            raise click.UsageError(
                f"--initial-controllers: this controller, {settings.node_id}, is not among them"
            )
        return cls(voters, my_directory=mine.key.directory if mine else None)


def _parse(text: str, listener: str) -> VoterSet:
    voters: dict[int, Voter] = {}
    for item in filter(None, text.split(",")):
        match = _INITIAL.fullmatch(item.strip())
        if match is None:
            raise click.UsageError(f"--initial-controllers: {item!r} is not ID@HOST:PORT:DIRECTORY")
        node, host, port = int(match[1]), match[2].strip("[]"), int(match[3])
        if node in voters:
            raise click.UsageError(f"--initial-controllers: {node} is named twice")
        directory = UUID(bytes=urlsafe_b64decode(match[4] + "=="))
        voters[node] = Voter(ReplicaKey(node, directory), ((listener, host, port),))
    if not voters:
        raise click.UsageError("--initial-controllers: at least one controller is needed")
    return VoterSet(voters)


def write_first_voters(
    directory: str, first: FirstVoters, settings: BrokerSettings, directory_id: UUID
) -> None:
    """Write the voters to the directory of the metadata log, if there are any."""
    # Imported here, because `up` also formats, and `up` must not load all modules of a node.
    from tidelog.node.metadata.snapshot_files import BOOTSTRAP, encode_bootstrap, path_of
    from tidelog.node.storage.opening import controller_endpoints

    voters = first.voters
    if first.is_standalone:
        key = ReplicaKey(settings.node_id, directory_id)
        voters = VoterSet({settings.node_id: Voter(key, controller_endpoints(settings))})
    if voters is not None:
        content = encode_bootstrap(VoterMembership(DYNAMIC, voters), time.time_ns() // 1_000_000)
        write_durably(Path(directory) / path_of(BOOTSTRAP), content)


def write_durably(target: Path, content: bytes) -> None:
    """Write and sync the file. After a crash, the file has all of the content or does not exist."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(target.suffix + ".tmp")
    with draft.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(target)
