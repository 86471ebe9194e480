"""The file `partition.metadata`, which names the topic and partition of a directory.

Kafka reads the first two lines. Tidelog adds a third line: a copy of the topic id, the partition
number and a checksum. With this line, Tidelog detects a flipped bit and still knows the topic id.
It also detects a directory whose name is wrong (F58).
"""

import re
from enum import Enum
from typing import NamedTuple

from crc32c import crc32c

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.model.disk import Disk
from tidelog.model.ids import TopicId

_COPY = "tidelog_copy"
_TOPIC_ID = re.compile(r"^topic_id:\s*(\S+)", re.MULTILINE)
_TOPIC_ID_COPY = re.compile(rf"{_COPY}: (\S+)(?: ([0-9]+))? ([0-9a-f]{{8}})")
RESTORED = b"restored\n"
"""Content that `tidelog stray restore` writes. It means that an operator has declared the directory
to belong to the topic in its name.
"""
HELD = b"held\n"
"""Content that marks a directory as held. It is written if the topic id is missing or damaged, and
the records might therefore belong to another topic of the same name. A held directory is out of use
at every start until an operator restores it.
"""


class Belonging(Enum):
    """Whether a partition directory belongs to a topic."""

    YES = "yes"
    NO = "no"
    """The directory belongs to another topic of the same name."""
    UNKNOWN = "unknown"
    """The directory holds records, and its partition.metadata is missing or damaged."""
    HELD = "held"
    """The directory was UNKNOWN at an earlier start, and may belong to another topic."""
    MISPLACED = "misplaced"
    """partition.metadata names another partition, because the file or the directory was moved."""


class TopicIdRead(NamedTuple):
    topic_id: TopicId | None
    """None if the file is absent or damaged."""
    partition: int | None = None
    """None if the file does not contain the partition number, as in Kafka."""
    is_restored: bool = False
    is_held: bool = False
    is_absent: bool = False
    needs_repair: bool = False
    """Whether the topic id is known but another part of the file is damaged."""

    def is_in_place(self, partition: int) -> bool:
        """Whether the file may belong to this partition."""
        return self.partition in (None, partition)


def encode(topic_id: TopicId, partition: int) -> bytes:
    text = checkpoints.encode_id(topic_id)
    copy = f"{text} {partition}"
    return f"version: 0\ntopic_id: {text}\n{_COPY}: {copy} {_checksum(copy)}\n".encode()


def path_in(directory: str) -> str:
    return f"{directory}/{names.PARTITION_METADATA}"


def read(disk: Disk, directory: str) -> TopicIdRead:
    """Read the file; the topic id comes from Tidelog's copy if the copy's checksum matches."""
    try:
        content = disk.read_file(path_in(directory))
    except FileNotFoundError:
        return TopicIdRead(None, is_absent=True)
    if content in (RESTORED, HELD):
        return TopicIdRead(None, is_restored=content == RESTORED, is_held=content == HELD)
    text = content.decode("utf-8", errors="replace")
    plain, (copy, partition) = _plain(text), _copy(text)
    topic_id = copy if copy is not None else plain
    needs_repair = topic_id is not None and not _is_sound(content, topic_id, partition)
    return TopicIdRead(topic_id, partition, needs_repair=needs_repair)


def _is_sound(content: bytes, topic_id: TopicId, partition: int | None) -> bool:
    """Whether the file has exactly the content that Tidelog or Kafka writes.

    The bytes are compared instead of the ids, because 16 different base64 strings decode to the
    same id.
    """
    if partition is not None:
        return content == encode(topic_id, partition)
    text = checkpoints.encode_id(topic_id)
    kafkas = f"version: 0\ntopic_id: {text}"
    without_partition = f"{kafkas}\n{_COPY}: {text} {_checksum(text)}"
    return content.strip() in (kafkas.encode(), without_partition.encode())


def _plain(text: str) -> TopicId | None:
    found = _TOPIC_ID.search(text)
    return None if found is None else checkpoints.decode_id(found[1])


def _copy(text: str) -> tuple[TopicId | None, int | None]:
    found = _TOPIC_ID_COPY.search(text)
    if found is None:
        return None, None
    topic_id, partition, checksum = found.groups()
    if checksum != _checksum(topic_id if partition is None else f"{topic_id} {partition}"):
        return None, None
    return checkpoints.decode_id(topic_id), None if partition is None else int(partition)


def _checksum(text: str) -> str:
    return f"{crc32c(text.encode()):08x}"
