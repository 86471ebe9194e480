"""The file `quorum-state`: a voter's promises, in Kafka's JSON."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

from tidelog.model.disk import Disk
from tidelog.model.ids import METADATA_TOPIC, NO_NODE
from tidelog.replication.quorum.state import QuorumState, ReplicaKey

PATH = f"{METADATA_TOPIC}-0/quorum-state"


def load(disk: Disk) -> QuorumState | None:
    """The saved promises; None when there are none, or none that can be read.

    An unreadable file is as bad as a wiped disk: the machine then votes for nobody who has data.
    """
    try:
        saved = json.loads(disk.read_file(PATH))
        voted = int(saved.get("votedId", NO_NODE))
        directory = saved.get("votedDirectoryId")
        return QuorumState(
            epoch=int(saved["leaderEpoch"]),
            leader=int(saved["leaderId"]),
            voted=None if voted == NO_NODE else ReplicaKey(voted, _decode_uuid(directory)),
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save(disk: Disk, state: QuorumState) -> None:
    """Synced when it returns."""
    voted = state.voted
    content = {
        "leaderId": state.leader,
        "leaderEpoch": state.epoch,
        "votedId": NO_NODE if voted is None else voted.id,
        "votedDirectoryId": _encode_uuid(voted.directory if voted is not None else None),
        "data_version": 1,
    }
    disk.write_file(PATH, json.dumps(content, separators=(",", ":")).encode())


def _encode_uuid(value: UUID | None) -> str:
    return urlsafe_b64encode((value or UUID(int=0)).bytes).decode().rstrip("=")


def _decode_uuid(text: str | None) -> UUID | None:
    if not text:
        return None
    value = UUID(bytes=urlsafe_b64decode(text + "=="))
    return None if value.int == 0 else value
