"""Changes of a transaction coordinator's state that are not stored, and would be lost anyway."""

from typing import NamedTuple

from tidelog.coordination.transactions.markers import DueMarkers, LeaderOf, TxnMarker
from tidelog.coordination.transactions.transaction import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, ProducerId, TopicPartition


class OutcomeWritten(NamedTuple):
    """A transaction whose outcome is written. It identifies the decision until it is committed."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int


class MarkersBegun(NamedTuple):
    transactional_id: str
    transaction: Transaction
    now: Millis


class MarkersSent(NamedTuple):
    due: DueMarkers
    now: Millis


class MarkerAnswered(NamedTuple):
    marker: TxnMarker
    errors: dict[TopicPartition, ErrorCode]
    now: Millis


class MarkersDone(NamedTuple):
    transactional_id: str


class LeadersChanged(NamedTuple):
    leader_of: LeaderOf
    now: Millis


class ValueVersion(NamedTuple):
    """The version in which records are written from now on."""

    version: int


class ChecksDue(NamedTuple):
    """When to look for late transactions and for expired ids next."""

    abort_at: Millis
    expire_at: Millis
