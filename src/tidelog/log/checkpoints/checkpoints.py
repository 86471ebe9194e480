"""Kafka's small text files: offset checkpoints, epochs, meta.properties.

Invariant: a reader accepts any bytes. It returns the valid lines, and reports whether all lines
were valid. An absent file is valid and empty. A last line without a newline counts as torn and is
ignored.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from tidelog.log import names
from tidelog.model.disk import Disk
from tidelog.model.ids import LeaderEpoch, NodeId, Offset, TopicPartition

_VERSION = "0"
_MAX_EPOCH = (1 << 31) - 1
_MAX_NUMBER = (1 << 63) - 1


class OffsetsRead(NamedTuple):
    offsets: dict[TopicPartition, Offset]
    was_sound: bool


class EpochsRead(NamedTuple):
    starts: list[tuple[LeaderEpoch, Offset]]
    was_sound: bool


def encode_id(identifier: UUID) -> str:
    """A UUID as Kafka prints it: URL-safe base64 without padding."""
    return urlsafe_b64encode(identifier.bytes).rstrip(b"=").decode("ascii")


def decode_id(text: str) -> UUID | None:
    try:
        raw = urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        return None
    return UUID(bytes=raw) if len(raw) == 16 else None


# -- Checkpoints: the version, the number of entries, then the entries, one per line


def read_offsets(disk: Disk, path: str) -> OffsetsRead:
    """Read a file with one `<topic> <partition> <offset>` per line."""
    rows, was_sound = _read_rows(disk, path, 3)
    offsets = {}
    for topic, partition, offset in rows:
        if _is_number(partition) and _is_number(offset):
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        else:
            was_sound = False
    return OffsetsRead(offsets, was_sound)


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    return _encode_rows([f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()])


def read_epochs(disk: Disk, path: str) -> EpochsRead:
    """Read a file with one `<epoch> <start offset>` per line, up to the first invalid line.

    Both numbers must increase from line to line.
    """
    rows, was_sound = _read_rows(disk, path, 2)
    starts: list[tuple[LeaderEpoch, Offset]] = []
    for epoch, start in rows:
        if not (_is_number(epoch) and _is_number(start)):
            return EpochsRead(starts, False)
        entry = (int(epoch), int(start))
        if entry[0] > _MAX_EPOCH:
            return EpochsRead(starts, False)
        if starts and (entry[0] <= starts[-1][0] or entry[1] <= starts[-1][1]):
            return EpochsRead(starts, False)
        starts.append(entry)
    return EpochsRead(starts, was_sound)


def encode_epochs(starts: Iterable[tuple[LeaderEpoch, Offset]]) -> bytes:
    return encode_pairs(starts)


def read_pairs(disk: Disk, path: str) -> tuple[list[tuple[int, int]], bool]:
    """Read a file with two numbers per line; returns the pairs, and whether all lines are valid."""
    rows, was_sound = _read_rows(disk, path, 2)
    if not all(_is_number(one) and _is_number(other) for one, other in rows):
        return [], False
    return [(int(one), int(other)) for one, other in rows], was_sound


def encode_pairs(pairs: Iterable[tuple[int, int]]) -> bytes:
    return _encode_rows([f"{one} {other}" for one, other in pairs])


def _encode_rows(rows: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(rows)), *rows, ""]).encode()


def _read_rows(disk: Disk, path: str, width: int) -> tuple[list[list[str]], bool]:
    if not disk.exists(path):
        return [], True
    text = disk.read_file(path).decode("utf-8", errors="replace")
    lines = text.split("\n")
    torn = lines.pop()
    if len(lines) < 2 or lines[0] != _VERSION or not _is_number(lines[1]):
        return [], False
    rows = [line.split(" ") for line in lines[2:]]
    whole = [row for row in rows if len(row) == width]
    return whole, not torn and len(whole) == len(rows) == int(lines[1])


def _is_number(text: str) -> bool:
    return len(text) < 20 and text.isascii() and text.isdigit() and int(text) <= _MAX_NUMBER


# -- the file meta.properties


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The content of meta.properties (version 1): the cluster and node that own a log directory."""

    cluster_id: str
    node_id: NodeId
    directory_id: UUID


def read_meta_properties(disk: Disk) -> MetaProperties | None:
    """The content of meta.properties; None when the file is absent or incomplete."""
    return decode_meta_properties(_content(disk, names.META_PROPERTIES))


def read_meta_copy(disk: Disk) -> MetaProperties | None:
    """The content of Tidelog's copy of meta.properties; None if its checksum does not match."""
    return decode_meta_copy(_content(disk, names.META_PROPERTIES_COPY))


def decode_meta_copy(content: bytes) -> MetaProperties | None:
    body, checksum = _split_checksum(content)
    return decode_meta_properties(body) if checksum == crc32c(body) else None


def decode_meta_properties(content: bytes) -> MetaProperties | None:
    found = parse_properties(content.decode("utf-8", "replace"))
    directory_id = decode_id(found.get("directory.id", ""))
    node_id, cluster_id = found.get("node.id", ""), found.get("cluster.id", "")
    if directory_id is None or not _is_number(node_id) or not _is_name(cluster_id):
        return None
    return MetaProperties(cluster_id, int(node_id), directory_id)


def write_meta_properties(disk: Disk, meta: MetaProperties) -> None:
    """Write meta.properties, and a copy of it with a checksum (F59)."""
    content = encode_meta_properties(meta)
    disk.write_file(names.META_PROPERTIES_COPY, content + _checksum_line(content))
    disk.write_file(names.META_PROPERTIES, content)


def encode_meta_properties(meta: MetaProperties) -> bytes:
    lines = [
        "#",
        f"cluster.id={meta.cluster_id}",
        f"directory.id={encode_id(meta.directory_id)}",
        f"node.id={meta.node_id}",
        "version=1",
        "",
    ]
    return "\n".join(lines).encode()


def _content(disk: Disk, path: str) -> bytes:
    try:
        return disk.read_file(path)
    except (FileNotFoundError, IsADirectoryError):
        return b""


def _checksum_line(content: bytes) -> bytes:
    return f"# checksum {crc32c(content)}\n".encode()


def _split_checksum(content: bytes) -> tuple[bytes, int]:
    body, _, number = content.rpartition(b"# checksum ")
    text = number.decode("ascii", "replace").removesuffix("\n")
    return body, int(text) if _is_number(text) else -1


def _is_name(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable()


def parse_properties(text: str) -> dict[str, str]:
    """Parse the subset of Java's properties format that Kafka's own files use."""
    found = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            found[key.strip()] = value.strip().replace("\\", "")
    return found
