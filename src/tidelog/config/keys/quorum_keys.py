"""The broker keys about the metadata quorum and its log."""

from tidelog.config import reasons
from tidelog.config.checks import at_least
from tidelog.config.key import int32, int64

QUORUM_KEYS = (
    int32(
        "controller.quorum.append.linger.ms",
        25,
        "How long an append waits for more records.",
        at_least(0),
        support=reasons.BATCHING,
    ),
    int32(
        "controller.quorum.election.backoff.max.ms",
        1000,
        "The longest wait of a candidate after a lost election.",
        at_least(0),
    ),
    int32(
        "controller.quorum.election.timeout.ms",
        1000,
        "How long a candidate waits for votes.",
        at_least(0),
    ),
    int32(
        "controller.quorum.fetch.timeout.ms",
        2000,
        "How long a voter waits for its leader before it starts an election.",
        at_least(0),
    ),
    int32(
        "controller.quorum.request.timeout.ms",
        2000,
        "How long a voter waits for the response to a request.",
        at_least(0),
    ),
    int32(
        "controller.quorum.retry.backoff.ms",
        20,
        "How long a voter waits before it repeats a request.",
        at_least(0),
    ),
    int32(
        "metadata.log.segment.bytes",
        1073741824,
        "The size of a segment of the metadata log.",
        at_least(8388608),
    ),
    int64(
        "metadata.log.segment.ms",
        604800000,
        "The age at which a new segment of the metadata log begins.",
    ),
    int64(
        "metadata.max.retention.bytes",
        104857600,
        "The size of the metadata log and its snapshots above which old ones are deleted.",
    ),
    int64(
        "metadata.max.retention.ms",
        604800000,
        "The age at which old segments and snapshots of metadata are deleted.",
        support=reasons.METADATA_RETENTION,
    ),
    int32(
        "metadata.max.idle.interval.ms",
        500,
        "How often the active controller appends a record while nothing changes.",
        at_least(0),
        support=reasons.IDLE_METADATA,
    ),
    int64(
        "metadata.log.max.record.bytes.between.snapshots",
        20971520,
        "The bytes of metadata after which a snapshot is written.",
        at_least(1),
    ),
    int64(
        "metadata.log.max.snapshot.interval.ms",
        3600000,
        "The time after which a snapshot is written; 0 means never.",
        at_least(0),
    ),
)
