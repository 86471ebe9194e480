"""BrokerHeartbeat with a tagged field of Tidelog: the log ends of partitions without a leader.

Kafka's nodes ignore the tag, and Tidelog sends it only if a partition under the quorum rule has no
leader (ADR 27).
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from kio.schema.broker_heartbeat.v2 import request as kafka
from kio.schema.request_header.v2.header import RequestHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

LOG_ENDS_TAG = 10_000

_INT32, _INT64 = {"kafka_type": "int32"}, {"kafka_type": "int64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEndReport:
    """How far a replica's log goes, in the leader epoch in which the partition has no leader."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(2)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(63)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    partition_index: int = field(metadata=_INT32)
    leader_epoch: int = field(metadata=_INT32)
    last_epoch: int = field(metadata=_INT32)
    """The epoch of the last record; -1 if it is unknown."""
    log_end_offset: int = field(metadata=_INT64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest(kafka.BrokerHeartbeatRequest):
    log_ends: tuple[LogEndReport, ...] = field(metadata={"tag": LOG_ENDS_TAG}, default=())
