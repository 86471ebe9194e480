"""ListOffsets: the start and end of a log are returned at once; a search by time runs as a job.

Each request runs one job at a time, however many partitions it names, so that all requests share
the workers equally. A result is used only if the partition's leadership did not change during the
search.
"""

from collections.abc import Callable

from tidelog.log.indexes.timestamps import Found, NewestSearch, TimeSearch
from tidelog.log.results import TimestampOffset
from tidelog.model.disk import NotCached
from tidelog.model.effects import FindOffsets, OffsetFound, OffsetQuery
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    NO_NODE,
    NO_OFFSET,
    NO_TIMESTAMP,
    ConnId,
    LeaderEpoch,
    NodeId,
    Offset,
    TopicPartition,
)
from tidelog.model.jobs import TooManyJobs
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.cold_reads import ColdReads
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.parking import PARKED, Parked, Resume

_LATEST, _NEWEST = -1, -3
_NEEDS_SETTLED_LEADER = (_LATEST, _NEWEST)
_NOTHING = OffsetFound(ErrorCode.none)
_CONSUMER: NodeId = NO_NODE
_DEBUGGER: NodeId = -2
"""Replica ids that are not broker ids. A request with `_DEBUGGER` may also query a follower."""


class OffsetQueries:
    def __init__(
        self,
        partitions: Partitions,
        storage_failed: Callable[[TopicPartition, OSError], None],
        jobs: Jobs,
        cold_reads: ColdReads,
    ) -> None:
        self.partitions = partitions
        self.storage_failed = storage_failed
        self.jobs = jobs
        self.cold_reads = cold_reads
        self._waiting: dict[ConnId, dict[_Request, None]] = {}

    def find(self, effect: FindOffsets, resume: Resume, conn: ConnId) -> list[OffsetFound] | Parked:
        request = _Request(self, effect, conn)
        if request.go_on():
            return request.answers
        waiting = self._waiting.setdefault(conn, {})
        waiting[request] = None

        def answer(answers: list[OffsetFound]) -> None:
            del waiting[request]
            if not waiting:
                self._waiting.pop(conn, None)
            resume(answers)

        request.answer = answer
        return PARKED

    def connection_lost(self, conn: ConnId) -> None:
        """Cancel the searches for requests of a lost connection."""
        for request in self._waiting.pop(conn, ()):
            self.jobs.cancel(request.token)


class _Request:
    """The queries of one request, in order."""

    __slots__ = ("_conn", "_effect", "_owner", "answer", "answers", "token")

    def __init__(self, owner: OffsetQueries, effect: FindOffsets, conn: ConnId) -> None:
        self._owner = owner
        self._effect = effect
        self._conn = conn
        self.answers: list[OffsetFound] = []
        self.answer: Callable[[list[OffsetFound]], None] | None = None
        """Called when every query has a result; None before the request is parked."""
        self.token = 0
        """The token of the job under way."""

    def go_on(self) -> bool:
        """Answer queries until one needs a job; returns True if all are answered."""
        queries = self._effect.queries
        while len(self.answers) < len(queries):
            found = self._begin(queries[len(self.answers)])
            if found is None:
                return False
            self.answers.append(found)
        return True

    def _begin(self, query: OffsetQuery) -> OffsetFound | None:
        """Begin one query; returns its result, or None if a job is under way to find it."""
        replica = self._replica(query)
        if isinstance(replica, ErrorCode):
            return OffsetFound(replica)
        limit = replica.log.log_end_offset
        if self._effect.replica == _CONSUMER:
            if query.timestamp in _NEEDS_SETTLED_LEADER and not _is_settled(replica):
                return OffsetFound(ErrorCode.offset_not_available)
            committed = self._effect.read_committed
            limit = replica.last_stable_offset if committed else replica.high_watermark
        known = _known(replica, query.timestamp, limit)
        return self._search(query, replica, limit) if known is None else known

    def _replica(self, query: OffsetQuery) -> Replica | ErrorCode:
        partitions = self._owner.partitions
        if self._effect.replica == _DEBUGGER:
            replica = partitions.get(query.partition)
            if replica is not None:
                return replica
        return partitions.leading(query.partition, query.current_leader_epoch)

    def _search(
        self,
        query: OffsetQuery,
        replica: Replica,
        limit: Offset,
        start: Offset = 0,
        *,
        waits: bool = False,
    ) -> OffsetFound | None:
        """Begin a search from `start`; returns the result if there is nothing to search."""
        job: TimeSearch | NewestSearch | ErrorCode | None
        try:
            job = _search_job(replica, query.timestamp, limit, start, waits=waits)
        except NotCached as cold:
            cold_reads = self._owner.cold_reads
            if cold_reads.was_just_read(cold.part):
                return self._search(query, replica, limit, start, waits=True)
            cold_reads.begin(cold.part, self._conn, lambda: self._settle(self._begin(query)))
            return None
        except OSError as failure:
            return self._disk_failed(query, failure)
        if job is None:
            return self._not_found(query, replica)
        if isinstance(job, ErrorCode):
            return OffsetFound(job)
        epoch = _epoch_of(replica)

        def done(found: Found) -> None:
            if self._replica(query) is not replica or _epoch_of(replica) != epoch:
                self._settle(OffsetFound(ErrorCode.not_leader_or_follower))
            elif found is None and isinstance(job, TimeSearch) and job.next_offset < limit:
                self._settle(self._search(query, replica, limit, job.next_offset))
            elif found is None:
                self._settle(self._not_found(query, replica))
            else:
                self._settle(_found(found))

        def failed(error: Exception) -> None:
            if self._replica(query) is not replica:
                self._settle(OffsetFound(ErrorCode.not_leader_or_follower))
            elif isinstance(error, OSError):
                self._settle(self._disk_failed(query, error))
            elif isinstance(error, TooManyJobs):
                self._settle(OffsetFound(ErrorCode.offset_not_available))
            else:
                self._settle(OffsetFound(ErrorCode.unknown_server_error))

        self.token = self._owner.jobs.start(job, done, failed)
        return None

    def _settle(self, found: OffsetFound | None) -> None:
        """Store the result of a query and continue with the next queries.

        None means that the search continues in another job, so there is no result to store yet.
        """
        if found is None:
            return
        self.answers.append(found)
        if self.go_on():
            assert self.answer is not None
            self.answer(self.answers)

    def _not_found(self, query: OffsetQuery, replica: Replica) -> OffsetFound:
        is_search = query.timestamp >= 0 and self._effect.replica == _CONSUMER
        if is_search and not _is_settled(replica):
            # The record may exist and be committed without this leader knowing that yet.
            return OffsetFound(ErrorCode.offset_not_available)
        return _NOTHING

    def _disk_failed(self, query: OffsetQuery, failure: OSError) -> OffsetFound:
        self._owner.storage_failed(query.partition, failure)
        return OffsetFound(ErrorCode.kafka_storage_error)


def _search_job(
    replica: Replica, timestamp: int, limit: Offset, start: Offset, *, waits: bool
) -> TimeSearch | NewestSearch | ErrorCode | None:
    if timestamp == _NEWEST:
        return replica.log.search_newest(limit, waits=waits)
    return replica.log.search_by_time(timestamp, limit, start, waits=waits)


def _is_settled(replica: Replica) -> bool:
    """Whether the leader's high watermark is current; after an election it may be too low (F50)."""
    return replica.leader is not None and replica.leader.is_settled


def _epoch_of(replica: Replica) -> LeaderEpoch | None:
    return None if replica.leader is None else replica.leader.epoch


def _known(replica: Replica, timestamp: int, limit: Offset) -> OffsetFound | None:
    """The result of a query that needs no search; None if a search is needed."""
    log = replica.log
    match timestamp:
        case -1:
            return OffsetFound(ErrorCode.none, limit, NO_TIMESTAMP, log.latest_epoch)
        case -2 | -4:
            start = log.log_start_offset
            return OffsetFound(ErrorCode.none, start, NO_TIMESTAMP, log.epoch_at(start))
        case -5:
            # Tidelog has no tiered storage. As in Kafka without tiered storage, the answer is an
            # unknown offset and epoch.
            return OffsetFound(ErrorCode.none, NO_OFFSET)
        case _ if timestamp < 0 and timestamp != _NEWEST:
            return OffsetFound(ErrorCode.unsupported_version)
        case _:
            return None


def _found(found: TimestampOffset | ErrorCode) -> OffsetFound:
    if isinstance(found, ErrorCode):
        return OffsetFound(found)
    return OffsetFound(ErrorCode.none, found.offset, found.timestamp, found.leader_epoch)
