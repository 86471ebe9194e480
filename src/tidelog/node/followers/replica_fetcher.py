"""Fetches all partitions that this node follows from one leader broker, in one fetch session.

One fetch is under way at a time. A fetch request lists only partitions that have changed.

Invariant: a fetch offset proves to the leader that the follower holds all records below the offset.
A partition whose flush is due is therefore left out of fetches until its records are durable. A
response for an earlier epoch is ignored (F09). If a partition fails, only that partition backs off,
and the other partitions are still fetched (F62).
"""

import logging
from collections.abc import Callable
from functools import partial

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from tidelog.config.settings import BrokerSettings
from tidelog.log.results import AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, Millis, Offset, TopicId, TopicPartition
from tidelog.model.outbound import Chunk
from tidelog.node.clock import Clock
from tidelog.node.followers.followed import Followed
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Channel, Unanswered, coded
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    decode_response,
    encode_request,
)
from tidelog.replication.isr.fetch_suspects import FetchSuspects
from tidelog.replication.isr.follower import (
    RETRY_MS,
    AdvanceLogStart,
    AppendFetched,
    BackOff,
    FollowerEffect,
    NextFetch,
    RestartAt,
    TruncateTo,
    back_off_ms,
)

VERSION = 17
PARTITION_BYTES = 96
"""The maximum size of one added and one forgotten partition together in a request."""
REQUEST_BYTES = 256
"""The bytes of a request without its partitions."""
_DECODE = partial(decode_response, VERSION)
_NUDGE = ApiVersionsRequest(client_software_name="", client_software_version="")

log = logging.getLogger(__name__)


class ReplicaFetcher:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        channel: Channel,
        broker_epoch: Callable[[], BrokerEpoch],
        storage_failed: Callable[[TopicPartition, OSError], None],
        throttles: Throttles,
        *,
        lost: Callable[[], None],
        found: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._name = f"broker-{settings.node_id}-fetcher"
        self._clock = clock
        self._timers = clock.timers
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._storage_failed = storage_failed
        self._throttles = throttles
        self._lost = lost
        self._found = found
        self._is_lost = False
        self._suspects: FetchSuspects[Followed] = FetchSuspects()
        room = settings.socket_request_max_bytes - REQUEST_BYTES
        self._at_most = max(1, room // PARTITION_BYTES)
        """The maximum number of partitions in a request; a leader refuses longer requests (F60)."""
        self._has_more = False
        """Whether some changes did not fit into the last request."""
        self._followed: dict[TopicPartition, Followed] = {}
        self._by_id: dict[tuple[TopicId, int], Followed] = {}
        self._due: dict[Followed, None] = {}
        """Partitions whose fetch offset in the leader's session may be out of date."""
        self._in_session = 0
        """The number of partitions in the leader's session."""
        self._forgotten: dict[tuple[TopicId, int], None] = {}
        """Partitions in the leader's session that this node no longer follows."""
        self._session_id = 0
        self._session_epoch = 0
        self._is_fetching = False
        self._has_nudged = False
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        return not self._followed

    def followed(self) -> list[tuple[Replica, LeaderEpoch]]:
        return [(one.replica, one.epoch) for one in self._followed.values()]

    def follow(self, replica: Replica, epoch: LeaderEpoch) -> None:
        self.drop(replica)
        followed = Followed(replica, epoch)
        self._followed[replica.partition] = followed
        self._by_id[followed.key] = followed
        self._due[followed] = None
        self._fetch()

    def drop(self, replica: Replica) -> None:
        followed = self._followed.pop(replica.partition, None)
        if followed is not None:
            self._by_id.pop(followed.key, None)
            self._due.pop(followed, None)
            self._suspects.forget(followed)
            self._forget(followed)

    def flushed(self, replica: Replica) -> None:
        """Resume fetching a partition that was left out because its flush was due."""
        if replica.partition in self._followed:
            self._fetch()

    def close(self) -> None:
        self._is_closed = True
        self._channel.close()

    # -- one fetch ---------------------------------------------------------------------------------

    def _fetch(self) -> None:
        if self._is_fetching:
            self._nudge_leader()
            return
        if self._is_closed or not self._followed:
            return
        topics = self._changed()
        if not self._in_session:
            return  # every partition waits for its flush or backs off
        self._is_fetching = True
        settings = self._settings
        request = FetchRequest(
            0 if self._has_more else settings.replica_fetch_wait_max_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=topics,
            forgotten=self._to_forget() if self._forgotten else (),
            replica_id=settings.node_id,
            replica_epoch=self._broker_epoch(),
        )

        def encode(correlation_id: int) -> list[Chunk]:
            return [encode_request(VERSION, correlation_id, self._name, request)]

        self._channel.request(encode, _DECODE, self._answered, settings.replica_socket_timeout_ms)

    def _nudge_leader(self) -> None:
        """Make the leader answer the current fetch now, because there are new partitions to fetch.

        The leader may hold that fetch until replica.fetch.wait.max.ms has passed. If another
        request arrives on the same connection, the leader answers the fetch at once.
        """
        if not self._has_nudged and not self._is_closed:
            self._has_nudged = True
            encode, decode = coded(_NUDGE, 0)
            patience = self._settings.replica_socket_timeout_ms
            self._channel.request(encode, decode, lambda _: None, patience)

    def _changed(self) -> list[tuple[TopicId, list[FetchPartition]]]:
        """The changes to send for the leader's session: new partitions and new fetch offsets."""
        topics: dict[TopicId, list[FetchPartition]] = {}
        now, room = self._clock.now, self._at_most
        looked_at, self._due = self._due, {}
        for followed in looked_at:
            if followed.is_held_back or not room:
                self._due[followed] = None
                continue
            replica, is_flush_due = followed.replica, followed.replica.is_flush_due
            throttled_ms = 0
            if not is_flush_due and not followed.is_in_sync:
                throttled_ms = self._throttles.wait_ms(replica)
            decided = followed.next_fetch(replica.log, now, throttled_ms, is_flush_due=is_flush_due)
            if decided is NextFetch.UNCHANGED:
                continue
            if decided is NextFetch.FETCH:
                room -= 1
                if self._forgotten or not followed.is_in_session:
                    self._add_to_session(followed)
                topics.setdefault(replica.topic_id, []).append(self._partition(followed))
                continue
            self._due[followed] = None
            if decided is NextFetch.LEAVE_OUT:
                self._forget(followed)
            elif decided is NextFetch.BACK_OFF:
                self._leave_out_until(followed, followed.retry_at)
        self._has_more = not room and bool(self._due)
        return list(topics.items())

    def _add_to_session(self, followed: Followed) -> None:
        if not followed.is_in_session:
            followed.is_in_session = True
            self._in_session += 1
        if self._forgotten:
            # A leader first adds the new partitions of a request and then removes the forgotten
            # ones. It would therefore remove a partition that is in both lists.
            self._forgotten.pop(followed.key, None)

    def _partition(self, followed: Followed) -> FetchPartition:
        end = followed.sent_offset
        return FetchPartition(
            followed.replica.partition.partition,
            followed.epoch,
            end,
            followed.replica.log.epoch_at(end - 1),
            followed.sent_start,
            self._settings.replica_fetch_max_bytes,
        )

    def _to_forget(self) -> list[tuple[TopicId, list[int]]]:
        topics: dict[TopicId, list[int]] = {}
        if self._session_epoch == 0:
            self._forgotten = {}
        elif self._forgotten:
            for topic_id, index in list(self._forgotten)[: self._at_most]:
                topics.setdefault(topic_id, []).append(index)
                del self._forgotten[topic_id, index]
        return list(topics.items())

    def _answered(self, answer: FetchResponse | Unanswered) -> None:
        self._is_fetching = self._has_nudged = False
        if self._is_closed:
            return
        if not isinstance(answer, Unanswered):
            self._take(answer)
        if self._is_lost or isinstance(answer, Unanswered):
            self._report_leader_state(answer)
        self._look_for_suspects(answer)
        if isinstance(answer, Unanswered) or answer.error is not ErrorCode.none:
            self._restart_session()
            self._timers.at(self._clock.now + RETRY_MS, self._fetch)
            return
        if answer.session_id == 0:
            self._session_id = 0
            self._restart_session()
        else:
            self._session_id = answer.session_id
            self._session_epoch = self._session_epoch % (2**31 - 1) + 1
        self._fetch()

    def _report_leader_state(self, answer: FetchResponse | Unanswered) -> None:
        if isinstance(answer, Unanswered):
            if answer.was_lost and not self._is_lost:
                self._is_lost = True
                self._lost()
        elif self._is_lost:
            self._is_lost = False
            self._found()

    def _look_for_suspects(self, answer: FetchResponse | Unanswered) -> None:
        if not isinstance(answer, Unanswered):
            blamed = self._suspects.passed()
        elif answer.was_connected:
            asked = (one for one in self._followed.values() if one.is_in_session)
            blamed = self._suspects.failed(asked)
        else:
            self._suspects.unreachable()
            return
        for one in blamed:
            log.warning(
                "%s: every fetch from its leader that includes this partition fails: the others "
                "are fetched without it",
                one.replica.partition,
            )
            self._carry_out(one, one.back_off(self._clock.now, back_off_ms(one.blames)))

    def _restart_session(self) -> None:
        """Start a new session with the old session's id, so that the leader closes the old one."""
        self._session_epoch = 0
        self._forgotten = {}
        self._in_session = 0
        for followed in self._followed.values():
            followed.leave_session()
            self._due[followed] = None

    # -- one response ------------------------------------------------------------------------------

    def _take(self, response: FetchResponse) -> None:
        for topic_id, partitions in response.topics:
            assert not isinstance(topic_id, str)
            for fetched in partitions:
                followed = self._by_id.get((topic_id, fetched.partition))
                if followed is not None and followed.replica.leader is None:
                    self._take_one(followed, fetched)

    def _take_one(self, followed: Followed, fetched: PartitionFetched) -> None:
        replica, now = followed.replica, self._clock.now
        try:
            effect = followed.answered(fetched, replica.log, now)
            if effect is None:
                return
            self._due[followed] = None
            if isinstance(effect, AppendFetched):
                self._append(followed, fetched)
            else:
                self._carry_out(followed, effect)
        except OSError as failure:
            self._storage_failed(replica.partition, failure)
            self._carry_out(followed, followed.failed(now))
        except Exception:
            # An exception here is a bug in this node. The other partitions are still followed.
            log.exception("%s: the leader's response could not be processed", replica.partition)
            self._carry_out(followed, followed.failed(now))

    def _append(self, followed: Followed, fetched: PartitionFetched) -> None:
        replica, records = followed.replica, fetched.records
        if isinstance(records, memoryview) and records:
            outcome = replica.log.append_as_follower(records, followed.epoch)
            if isinstance(outcome, AppendRefused):
                log.error("%s: the leader sent %s", replica.partition, outcome.message)
                self._carry_out(followed, followed.failed(self._clock.now))
                return
            replica.appended()
            if not followed.is_in_sync:
                self._throttles.taken(replica, len(records))
        effect = followed.appended(fetched, replica.log)
        if effect is not None:
            self._carry_out(followed, effect)
        replica.learn_high_watermark(fetched.high_watermark)

    def _carry_out(self, followed: Followed, effect: FollowerEffect) -> None:
        replica = followed.replica
        match effect:
            case TruncateTo(offset):
                self._truncate(followed, offset)
            case RestartAt(offset):
                log.info(
                    "%s: starts again at %d, the log start offset of its leader",
                    replica.partition,
                    offset,
                )
                replica.restart_at(offset)
            case AdvanceLogStart(offset):
                replica.log.advance_log_start(offset)
                replica.moved()
            case BackOff(until):
                self._leave_out_until(followed, until)
            case AppendFetched():
                raise AssertionError("the records are part of the response")

    def _truncate(self, followed: Followed, offset: Offset) -> None:
        replica = followed.replica
        end = replica.log.log_end_offset
        log.info(
            "%s: truncated from %d to %d, where it diverges from its leader",
            replica.partition,
            end,
            offset,
        )
        replica.truncate(offset)
        backs_off = followed.truncated(end, replica.log, self._clock.now)
        if backs_off is not None:
            self._carry_out(followed, backs_off)

    def _leave_out_until(self, followed: Followed, time: Millis) -> None:
        """Leave the partition out of fetches until this time, or until its assignment changes."""
        self._forget(followed)
        self._timers.at(time, self._fetch)

    def _forget(self, followed: Followed) -> None:
        """Remove the partition from the leader's session.

        As a result, new records in the partition no longer make the leader answer a waiting fetch.
        """
        if followed.is_in_session:
            self._forgotten[followed.key] = None
            self._in_session -= 1
        followed.leave_session()
