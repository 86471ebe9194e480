"""The file `quorum-state`: a voter's epoch and vote, in Kafka's JSON, with an additional checksum.

Kafka ignores the field `checksum`. A file that Kafka wrote has no checksum. It is used if the value
of every field is plausible.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, NamedTuple
from uuid import UUID

from crc32c import crc32c

from tidelog.model.disk import Disk
from tidelog.model.ids import METADATA_TOPIC, NO_NODE
from tidelog.replication.quorum.state import QuorumState, ReplicaKey

NAME = "quorum-state"
PATH = f"{METADATA_TOPIC}-0/{NAME}"
_CHECKSUM = "checksum"
_LARGEST = 2**31 - 1
_PLAUSIBLE_EPOCH = _LARGEST - (1 << 16)
"""The highest epoch that is accepted without a checksum; elections do not reach it."""


class PromisesRead(NamedTuple):
    state: QuorumState | None
    """The saved state; None if the file is missing or not usable."""
    is_damaged: bool = False
    """Whether the file exists but is not usable."""


def load(disk: Disk) -> PromisesRead:
    try:
        content = disk.read_file(PATH)
    except FileNotFoundError:
        return PromisesRead(None)
    try:
        return PromisesRead(_decode(json.loads(content)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return PromisesRead(None, is_damaged=True)


def save(disk: Disk, state: QuorumState) -> None:
    """Write the file and sync it before returning."""
    voted = state.voted
    content: dict[str, Any] = {
        "leaderId": state.leader,
        "leaderEpoch": state.epoch,
        "votedId": NO_NODE if voted is None else voted.id,
        "votedDirectoryId": _encode_uuid(voted.directory if voted is not None else None),
        "data_version": 1,
    }
    content[_CHECKSUM] = _checksum(content)
    disk.write_file(PATH, _encode(content))


def _decode(saved: dict[str, Any]) -> QuorumState:
    checksum = saved.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(saved):
        raise ValueError("the checksum does not match")
    voted = _number(saved.get("votedId", NO_NODE), NO_NODE, _LARGEST)
    directory = _decode_uuid(saved.get("votedDirectoryId"))
    return QuorumState(
        epoch=_number(saved["leaderEpoch"], 0, _PLAUSIBLE_EPOCH if checksum is None else _LARGEST),
        leader=_number(saved["leaderId"], NO_NODE, _LARGEST),
        voted=None if voted == NO_NODE else ReplicaKey(voted, directory),
    )


def _number(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is not a number from {least} to {most}")
    return value


def _checksum(content: dict[str, Any]) -> int:
    return int(crc32c(_encode(content)))


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _encode_uuid(value: UUID | None) -> str:
    return urlsafe_b64encode((value or UUID(int=0)).bytes).decode().rstrip("=")


def _decode_uuid(text: str | None) -> UUID | None:
    if not text:
        return None
    value = UUID(bytes=urlsafe_b64decode(text + "=="))
    return None if value.int == 0 else value
