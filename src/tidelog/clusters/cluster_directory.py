"""Checks the directory of an earlier `tidelog up` before a new start changes its files.

Controllers elect a leader by majority. A start with fewer brokers could therefore elect a leader
that lacks committed records. A start is refused if its number of brokers, or its controller
addresses, differ from those of the directory. A start is also refused if files are missing. The
error says what to do.
"""

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidelog.config.properties import parse_properties
from tidelog.log.checkpoints.checkpoints import decode_meta_copy
from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY
from tidelog.model.ids import METADATA_TOPIC, NodeId
from tidelog.model.user_error import UserError

END_SECONDS = 15.0
"""How long to wait until the nodes of an earlier start have shut down."""

_PAUSE_SECONDS = 0.05
_FLOCK = "hhqqi"
"""Linux's struct flock: type, whence, start, length, pid."""


@dataclass(frozen=True, slots=True)
class NodeDirectory:
    """The state of one node's directory, DIR/<id>."""

    path: Path
    identity: Mapping[str, str] | None
    """The content of meta.properties; None if the file is missing."""
    holds_logs: bool
    voters: Mapping[NodeId, str]
    """The addresses of the controllers in the node's last server.properties."""

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def meta(self) -> Path:
        return self.data / META_PROPERTIES

    @property
    def metadata_log(self) -> Path:
        return self.data / f"{METADATA_TOPIC}-0"


class ClusterDirectory:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._nodes = {node: _read(directory / str(node)) for node in _ids(directory)}

    @property
    def _formatted(self) -> dict[NodeId, NodeDirectory]:
        return {
            node: one
            for node, one in self._nodes.items()
            if one.identity is not None or one.holds_logs
        }

    @property
    def brokers(self) -> int | None:
        """The number of brokers of this cluster; None if there is no cluster yet."""
        formatted = self._formatted
        voters = {voter for one in formatted.values() for voter in one.voters}
        return max(voters or formatted, default=None)

    def check(self, brokers: int, addresses: Mapping[NodeId, str]) -> list[str]:
        """Raise UserError if this start does not fit the directory; otherwise return warnings.

        `addresses` are the addresses that this start gives to the controllers.
        """
        if self.brokers is None:
            return []
        self._check_size(brokers)
        whole = {node: one for node, one in self._formatted.items() if node <= brokers}
        for node, one in whole.items():
            self._check_identity(node, one, can_be_copied=_is_majority(len(whole) - 1, brokers))
        self._check_same_cluster(whole)
        self._check_addresses(whole, addresses)
        return self._check_missing(brokers, whole)

    def _check_size(self, brokers: int) -> None:
        if self.brokers != brokers:
            many = "1 broker" if self.brokers == 1 else f"{self.brokers} brokers"
            raise UserError(
                f"{self._directory} holds a cluster of {many}: start it with "
                f"--brokers {self.brokers}, or use another --dir for a new cluster."
            )

    def _check_identity(self, node: NodeId, one: NodeDirectory, *, can_be_copied: bool) -> None:
        if one.identity is None or not {"cluster.id", "node.id"} <= one.identity.keys():
            wrong = "is missing" if one.identity is None else "lacks cluster.id or node.id"
            advice = "Restore it"
            if can_be_copied:
                advice += (
                    f", or move {one.path} away: node {node} then starts empty and copies "
                    "everything from the others"
                )
            raise UserError(f"{one.meta} {wrong}. {advice}.")
        if one.identity["node.id"] != str(node):
            raise UserError(
                f"{one.data} belongs to node {one.identity['node.id']}, not to node {node}: "
                "it was copied or moved here. Put the directory of each node back in its place."
            )

    def _check_same_cluster(self, whole: Mapping[NodeId, NodeDirectory]) -> None:
        clusters: dict[str, Path] = {}
        for one in whole.values():
            assert one.identity is not None
            clusters.setdefault(one.identity["cluster.id"], one.data)
        if len(clusters) > 1:
            shown = " and ".join(f"{path} to {id_}" for id_, path in clusters.items())
            raise UserError(
                f"the nodes in {self._directory} belong to different clusters: {shown}. "
                "Each cluster needs a --dir of its own."
            )

    def _check_missing(self, brokers: int, whole: Mapping[NodeId, NodeDirectory]) -> list[str]:
        """Warn about missing node directories; refuse a start if no majority is left (F40).

        A controller with an empty directory does not vote until it has copied the log, so a
        minority of the nodes can safely start with empty directories. If more directories are
        missing, the last copies of committed metadata may be lost.
        """
        missing = [node for node in range(1, brokers + 1) if node not in whole]
        if not missing or not any(one.metadata_log.exists() for one in whole.values()):
            return []
        paths = {node: self._directory / str(node) / "data" for node in missing}
        if not _is_majority(len(whole), brokers):
            raise UserError(
                f"{', '.join(map(str, paths.values()))}: missing, and {len(whole)} of {brokers} "
                "controllers are no majority. Restore the missing directories, or use another "
                "--dir for a new cluster."
            )
        return [
            f"{path} is missing: node {node} starts empty and copies everything from the others"
            for node, path in paths.items()
        ]

    def _check_addresses(
        self, whole: Mapping[NodeId, NodeDirectory], addresses: Mapping[NodeId, str]
    ) -> None:
        """Refuse the start if the metadata log has other controller addresses (kraft.version 1)."""
        if all(one.voters == addresses for one in whole.values()):
            return
        # Imported here because most starts do not read the log.
        from tidelog.clusters.recorded_voters import recorded_voters

        for one in whole.values():
            recorded = recorded_voters(one.metadata_log)
            moved = [
                f"{node} at {recorded[node]}"
                for node in recorded
                if node in addresses and recorded[node] != addresses[node]
            ]
            if moved:
                raise UserError(
                    f"the metadata log in {self._directory} has other addresses of controllers "
                    f"(kraft.version 1: {', '.join(moved)}); start with the same --port as before."
                )

    # -- Nodes that still run ----------------------------------------------------------------------

    def await_end_of_nodes(self, tell: Callable[[str], None]) -> None:
        """Wait until the nodes of an earlier start have ended, for example if `up` was killed."""
        deadline = time.monotonic() + END_SECONDS
        told = False
        while running := list(self._running()):
            node, process = running[0]
            if time.monotonic() > deadline:
                raise UserError(
                    f"node {node} of an earlier start in {self._directory} still runs as "
                    f"{process}. End it, then try again."
                )
            if not told:
                tell(f"waiting for node {node} of an earlier start to end ({process})")
                told = True
            time.sleep(_PAUSE_SECONDS)

    def _running(self) -> Iterator[tuple[NodeId, str]]:
        for node, one in self._nodes.items():
            pid = holder_of(one.data / ".lock")
            if pid is not None:
                yield node, f"process {pid}" if pid > 0 else "a process elsewhere"


def holder_of(lock: Path) -> int | None:
    """The pid of the process that holds a node's lock; None if no process holds it."""
    try:
        opened = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        wish = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(opened, fcntl.F_GETLK, wish))
    finally:
        os.close(opened)
    return None if kind == fcntl.F_UNLCK else int(pid)


def _is_majority(some: int, of_all: int) -> bool:
    return 2 * some > of_all


def _ids(directory: Path) -> list[NodeId]:
    if not directory.is_dir():
        return []
    names = (path.name for path in directory.iterdir() if path.is_dir())
    return sorted(int(name) for name in names if name.isdecimal() and str(int(name)) == name)


def _read(path: Path) -> NodeDirectory:
    data = path / "data"
    holds_logs = data.is_dir() and any(one.is_dir() for one in data.iterdir())
    voters: dict[NodeId, str] = {}
    config = _properties(path / "server.properties") or {}
    for voter in config.get("controller.quorum.voters", "").split(","):
        node, at, address = voter.partition("@")
        if at and node.isdecimal():
            voters[int(node)] = address
    return NodeDirectory(path, _identity(data), holds_logs, voters)


def _identity(data: Path) -> dict[str, str] | None:
    """Read the copy of meta.properties if it is valid, as a node does. Otherwise read the file."""
    copy = data / META_PROPERTIES_COPY
    meta = decode_meta_copy(copy.read_bytes()) if copy.is_file() else None
    if meta is not None:
        return {"cluster.id": meta.cluster_id, "node.id": str(meta.node_id)}
    return _properties(data / META_PROPERTIES)


def _properties(path: Path) -> dict[str, str] | None:
    try:
        return parse_properties(path.read_bytes().decode("utf-8", "replace"))
    except (FileNotFoundError, IsADirectoryError):
        return None
