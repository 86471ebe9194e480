"""File and directory names, as in Kafka."""

from uuid import UUID

from tidelog.model.ids import Offset, TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
SET_ASIDE = ".set-aside"
"""The suffix of a file that does not belong in its log but is kept. Kafka ignores files with this
suffix.
"""
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
DAMAGE_CHECKPOINT = "damage-checkpoint"
"""A file that only Tidelog uses: the offset ranges of a log that are known to be unreadable."""
PARTITION_METADATA = "partition.metadata"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
META_PROPERTIES_COPY = "meta.properties.copy"
METADATA_LOG_MARK = "metadata-log-mark"
"""A file that only Tidelog uses: the offset up to which the metadata log was synced."""
MACHINE_BOOT = "machine-boot"
"""A file that only Tidelog uses: the id of the machine boot in which all logs were last valid."""

DELETE_DIRECTORY = "-delete"
STRAY_DIRECTORY = "-stray"
FUTURE_DIRECTORY = "-future"

_DIGITS = 20
_MAX_NAME = 255
"""The longest name that every common file system allows."""


def offset_name(offset: Offset, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> Offset | None:
    """The offset in a file name of Kafka's form with this suffix; None for any other name."""
    stem = name.removesuffix(suffix)
    if len(stem) != _DIGITS or len(stem) == len(name) or not (stem.isascii() and stem.isdigit()):
        return None
    return int(stem)


def segment_file(name: str) -> tuple[Offset, str] | None:
    """The base offset and suffix of a segment's file; None for any other name."""
    digits, suffix = name[:_DIGITS], name[_DIGITS:]
    if suffix not in SEGMENT_SUFFIXES or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits), suffix


def partition_of(directory: str) -> TopicPartition | None:
    """The partition that a directory `<topic>-<n>` holds; None for any other name."""
    topic, dash, number = directory.rpartition("-")
    if not (topic and dash and number.isascii() and number.isdigit()) or "." in number:
        return None
    if number != str(int(number)):
        return None
    return TopicPartition(topic, int(number))


def is_deleted_directory(directory: str) -> bool:
    """`<topic>-<n>.<uuid>-delete`: a partition that is being deleted."""
    stem = directory.removesuffix(DELETE_DIRECTORY)
    _, dot, unique = stem.rpartition(".")
    return stem != directory and bool(dot) and len(unique) == 32


def is_stray_directory(directory: str) -> bool:
    """`<topic>-<n>.<uuid>-stray`: a partition that was set aside and is kept."""
    return stray_partition(directory) is not None


def stray_partition(directory: str) -> TopicPartition | None:
    """The partition in the name of a stray directory; a long topic name may be shortened.

    Returns None for any other name.
    """
    stem = directory.removesuffix(STRAY_DIRECTORY)
    name, _, unique = stem.rpartition(".")
    return partition_of(name) if stem != directory and len(unique) == 32 else None


def is_future_directory(directory: str) -> bool:
    """`<topic>-<n>.<uuid>-future`: a partition that is moving here from another log directory."""
    stem = directory.removesuffix(FUTURE_DIRECTORY)
    _, dot, unique = stem.rpartition(".")
    return stem != directory and bool(dot) and len(unique) == 32


def renamed_directory(partition: TopicPartition, unique: UUID, suffix: str) -> str:
    """`<topic>-<n>.<uuid><suffix>`; the topic name is shortened if the result would be too long."""
    tail = f"-{partition.partition}.{unique.hex}{suffix}"
    return partition.topic[: _MAX_NAME - len(tail)] + tail
