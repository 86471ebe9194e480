"""Follows one leader broker: all its partitions in one fetch session, one fetch after another.

Invariant: what is asked for next proves what is held, so a partition that waits for its own flush
is left out until it is durable; an answer for an epoch that has passed changes nothing (F09). What
has not moved since it was asked for costs nothing. A partition that fails waits by itself, and the
others are followed on (F62).
"""

import logging
from collections.abc import Callable

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from tidelog.config.settings import BrokerSettings
from tidelog.log.results import AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import BrokerEpoch, LeaderEpoch, Millis, TopicId, TopicPartition
from tidelog.model.outbound import Chunk
from tidelog.node.clock import Clock
from tidelog.node.followers.fetch_suspects import FetchSuspects
from tidelog.node.followers.followed import RETRY_MS, Followed, back_off_ms
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.throttles import Throttles
from tidelog.node.peers import Channel, Unanswered, coded
from tidelog.node.timers import Timers
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    decode_response,
    encode_request,
)
from tidelog.replication.divergence import truncation_point

VERSION = 17
PARTITION_BYTES = 96
"""What one partition takes at most in a request that asks for it and forgets another."""
REQUEST_BYTES = 256
"""What a request takes beside its partitions."""
THROTTLED_MS: Millis = 1_000
"""How long a throttled partition is left out at most before the rate is looked at again."""
_NUDGE = ApiVersionsRequest(client_software_name="", client_software_version="")

log = logging.getLogger(__name__)


class ReplicaFetcher:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        timers: Timers,
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
        self._timers = timers
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._storage_failed = storage_failed
        self._throttles = throttles
        self._lost = lost
        self._found = found
        self._is_lost = False
        self._suspects = FetchSuspects()
        room = settings.socket_request_max_bytes - REQUEST_BYTES
        self._at_most = max(1, room // PARTITION_BYTES)
        """How many partitions a request may name: a leader refuses one that is too long (F60)."""
        self._has_more = False
        """Whether there is more to say than the last request could name."""
        self._followed: dict[TopicPartition, Followed] = {}
        self._by_id: dict[tuple[TopicId, int], Followed] = {}
        self._due: dict[Followed, None] = {}
        """What the next fetch may have to say something new about."""
        self._in_session = 0
        """How many partitions the leader's session has."""
        self._forgotten: dict[tuple[TopicId, int], None] = {}
        """What the leader's session has and we do not ask for any more."""
        self._session_id = 0
        self._session_epoch = 0
        self._is_fetching = False
        self._has_hurried = False
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
        """A partition that was left out for its flush can be asked for again."""
        if replica.partition in self._followed:
            self._fetch()

    def close(self) -> None:
        self._is_closed = True
        self._channel.close()

    # -- one fetch ---------------------------------------------------------------------------------

    def _fetch(self) -> None:
        if self._is_fetching:
            self._hurry()
            return
        if self._is_closed or not self._followed:
            return
        topics = self._changed()
        if not self._in_session:
            return  # all wait for their flush, or for a better moment
        self._is_fetching = True
        settings = self._settings
        request = FetchRequest(
            0 if self._has_more else settings.replica_fetch_wait_max_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=topics,
            forgotten=self._to_forget(),
            replica_id=settings.node_id,
            replica_epoch=self._broker_epoch(),
        )

        def encode(correlation_id: int) -> list[Chunk]:
            return [encode_request(VERSION, correlation_id, self._name, request)]

        self._channel.request(
            encode, self._decode, self._answered, settings.replica_socket_timeout_ms
        )

    def _decode(self, frame: memoryview) -> FetchResponse:
        response = decode_response(VERSION, frame)
        # The records are views of the host's buffer: append them before this call returns.
        self._take(response)
        return response

    def _hurry(self) -> None:
        """There is more to ask for than the fetch under way, which the leader may hold for long.

        Any request behind it makes the leader answer it at once.
        """
        if not self._has_hurried and not self._is_closed:
            self._has_hurried = True
            encode, decode = coded(_NUDGE, 0)
            patience = self._settings.replica_socket_timeout_ms
            self._channel.request(encode, decode, lambda _: None, patience)

    def _changed(self) -> list[tuple[TopicId, list[FetchPartition]]]:
        """What the session does not know yet: new partitions, and new offsets of old ones."""
        topics: dict[TopicId, list[FetchPartition]] = {}
        now, room = self._clock.now, self._at_most
        looked_at, self._due = self._due, {}
        for followed in looked_at:
            replica = followed.replica
            if followed.is_held_back or not room:
                self._due[followed] = None
                continue
            if replica.is_flush_due:
                self._forget(followed)
                self._due[followed] = None
                continue
            throttled_ms = self._throttles.wait_ms(replica, in_sync=followed.is_in_sync)
            if throttled_ms:
                self._later(followed, min(throttled_ms, THROTTLED_MS))
                self._due[followed] = None
                continue
            held = replica.log
            start, end = held.log_start_offset, held.log_end_offset
            if end == followed.sent_offset and start == followed.sent_start:
                continue
            if now < followed.retry_at:
                self._due[followed] = None
                continue
            followed.sent_offset, followed.sent_start = end, start
            room -= 1
            if not followed.is_in_session:
                followed.is_in_session = True
                self._in_session += 1
            if self._forgotten:
                # In one request a leader would forget it after it has added it.
                self._forgotten.pop(followed.key, None)
            topics.setdefault(replica.topic_id, []).append(
                FetchPartition(
                    replica.partition.partition,
                    followed.epoch,
                    end,
                    held.epoch_at(end - 1),
                    start,
                    self._settings.replica_fetch_max_bytes,
                )
            )
        self._has_more = not room and bool(self._due)
        return list(topics.items())

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
        self._is_fetching = self._has_hurried = False
        if self._is_closed:
            return
        self._see_whether_it_lives(answer)
        self._look_for_suspects(answer)
        if isinstance(answer, Unanswered) or answer.error is not ErrorCode.none:
            self._begin_session_anew()
            self._timers.at(self._clock.now + RETRY_MS, self._fetch)
            return
        if answer.session_id == 0:
            self._session_id = 0
            self._begin_session_anew()
        else:
            self._session_id = answer.session_id
            self._session_epoch = self._session_epoch % (2**31 - 1) + 1
        self._fetch()

    def _see_whether_it_lives(self, answer: FetchResponse | Unanswered) -> None:
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
                "%s: no fetch from its leader succeeds that asks for this partition: the others "
                "are fetched without it",
                one.replica.partition,
            )
            self._later(one, back_off_ms(one.blames))

    def _begin_session_anew(self) -> None:
        """With the old one's id, so that the leader ends that."""
        self._session_epoch = 0
        self._forgotten = {}
        self._in_session = 0
        for followed in self._followed.values():
            followed.sent_offset, followed.is_in_session = -1, False
            self._due[followed] = None

    # -- one answer --------------------------------------------------------------------------------

    def _take(self, response: FetchResponse) -> None:
        for topic_id, partitions in response.topics:
            assert not isinstance(topic_id, str)
            for fetched in partitions:
                followed = self._by_id.get((topic_id, fetched.partition))
                if followed is not None and followed.replica.leader is None:
                    self._take_one(followed, fetched)

    def _take_one(self, followed: Followed, fetched: PartitionFetched) -> None:
        replica = followed.replica
        if replica.log.log_end_offset != followed.sent_offset:
            return  # the answer to a question of an earlier epoch (F09)
        self._due[followed] = None
        try:
            if fetched.error is ErrorCode.offset_out_of_range:
                self._out_of_range(followed, fetched)
            elif fetched.error is not ErrorCode.none:
                self._later(followed)
            elif fetched.diverging_epoch is not None:
                mine = replica.log.epoch_end(fetched.diverging_epoch.epoch)
                start = replica.log.log_start_offset
                cut = truncation_point(fetched.diverging_epoch, mine, start)
                self._truncate(followed, cut)
            else:
                self._append(followed, fetched)
        except OSError as failure:
            self._storage_failed(replica.partition, failure)
            self._set_aside(followed)
        except Exception:
            # A bug of ours that this partition's answer has found: the others are followed on.
            log.exception("%s: what the leader sent could not be taken", replica.partition)
            self._set_aside(followed)

    def _append(self, followed: Followed, fetched: PartitionFetched) -> None:
        replica, records = followed.replica, fetched.records
        held = replica.log
        if isinstance(records, memoryview) and records:
            outcome = held.append_as_follower(records, followed.epoch)
            if isinstance(outcome, AppendRefused):
                log.error("%s: the leader sent %s", replica.partition, outcome.message)
                self._set_aside(followed)
                return
            followed.failures = 0
            replica.appended()
            self._throttles.taken(replica, len(records), in_sync=followed.is_in_sync)
        followed.is_in_sync = held.log_end_offset >= fetched.high_watermark
        if fetched.log_start_offset > held.log_start_offset:
            if fetched.log_start_offset > held.log_end_offset:
                replica.start_anew(fetched.log_start_offset)
            else:
                held.advance_log_start(fetched.log_start_offset)
                replica.moved()
        replica.learn_high_watermark(fetched.high_watermark)

    def _truncate(self, followed: Followed, cut: int) -> None:
        replica = followed.replica
        end = replica.log.log_end_offset
        log.info("%s: cut from %d to %d, where its leader parts", replica.partition, end, cut)
        replica.truncate(cut)
        if replica.log.log_end_offset == end:
            self._later(followed)

    def _out_of_range(self, followed: Followed, fetched: PartitionFetched) -> None:
        """The leader has deleted what comes next here: begin anew where its log begins.

        So does a log without records that begins where the leader's has not come to.
        """
        replica, start = followed.replica, fetched.log_start_offset
        held = replica.log
        is_empty = held.log_start_offset == held.log_end_offset
        if start > held.log_end_offset or (is_empty and 0 <= start < held.log_end_offset):
            log.info("%s: begins anew at %d, where its leader's begins", replica.partition, start)
            replica.start_anew(start)
        else:
            self._later(followed)

    def _set_aside(self, followed: Followed) -> None:
        """What came for it cannot be taken: the others do not wait for it, and it waits for long.

        The leader may be mended, or another may lead.
        """
        followed.failures += 1
        self._later(followed, back_off_ms(followed.failures))

    def _later(self, followed: Followed, delay: Millis = RETRY_MS) -> None:
        """Leave the partition out for a moment; a new image may come before that."""
        followed.retry_at = self._clock.now + delay
        self._forget(followed)
        self._timers.at(followed.retry_at, self._fetch)

    def _forget(self, followed: Followed) -> None:
        """The leader's session is to hold it no longer, or it would answer for it at once again."""
        if followed.is_in_session:
            self._forgotten[followed.key] = None
            self._in_session -= 1
        followed.sent_offset, followed.is_in_session = -1, False
