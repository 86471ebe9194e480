"""The follower's side of the metadata log, which fetches from the leader, one fetch at a time.

Invariant: the fetch offset never exceeds the synced end of the log. The leader takes the fetch
offset as proof that the follower holds all records below that offset.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    METADATA_TOPIC_ID,
    NO_EPOCH,
    NO_NODE,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
)
from tidelog.model.outbound import Chunk
from tidelog.node.clock import Clock
from tidelog.node.metadata.metadata_log import MetadataLog, UnusableMetadata
from tidelog.node.peers import Unanswered, coded
from tidelog.node.quorum import wire
from tidelog.node.quorum.network import QuorumNetwork
from tidelog.protocol.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionFetched,
    SnapshotId,
    decode_response,
    encode_request,
)
from tidelog.protocol.malformed import MalformedMessage
from tidelog.replication.divergence import truncation_point
from tidelog.replication.quorum.events import LeaderAnswered, LogGrew, QuorumEvent
from tidelog.replication.quorum.state import ReplicaKey

VERSION = 18
SNAPSHOT_VERSION = 1
FETCH_WAIT_MS: Millis = 500
MAX_BYTES = 8 << 20
DAMAGED_SNAPSHOT_BACKOFF_MS: Millis = 1_000

log = logging.getLogger(__name__)


class FetchOwner(Protocol):
    """The methods of the quorum that its fetcher calls."""

    def step(self, event: QuorumEvent) -> None: ...

    def follower_committed(self, high_watermark: Offset) -> None: ...

    def load_snapshot(self, snapshot: SnapshotId, content: bytes) -> bool:
        """Load a leader's snapshot; returns False if it is invalid or not newer."""

    def caught_up(self) -> None:
        """Called when the synced log holds all records that the leader knows to be committed."""

    def log_changed(self) -> None:
        """Called when records were appended or truncated; they may include voter sets."""

    @property
    def high_watermark(self) -> Offset: ...


class QuorumFetching:
    def __init__(
        self,
        me: ReplicaKey,
        log: MetadataLog,
        clock: Clock,
        network: QuorumNetwork,
        owner: FetchOwner,
    ) -> None:
        self._me = me
        self._log = log
        self._clock = clock
        self._timers = clock.timers
        self._network = network
        self._owner = owner
        self._leader: NodeId = NO_NODE
        self._epoch: LeaderEpoch = NO_EPOCH
        self._turn = 0
        """A count of leader changes, so that responses to fetches from before are ignored."""
        self._asked = 0
        """The value of `_turn` for which a fetch is under way. At most one fetch is sent per turn,
        because two fetches would return the same records.
        """

    def follow(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        self._leader, self._epoch = leader, epoch
        self._turn += 1
        self._fetch(self._turn)

    def stop(self) -> None:
        self._leader = NO_NODE
        self._turn += 1

    def synced(self) -> None:
        """Fetch the next records, because the appended records are synced."""
        if self._leader != NO_NODE:
            self._fetch(self._turn)

    def discover(self, voter: NodeId, epoch: LeaderEpoch) -> None:
        """Find the leader by sending a fetch to any node.

        The error response of that node names the leader and the leader's address.
        """
        # The id of a bootstrap server is unknown. With epoch 0, even the leader answers with an
        # error, which names the leader's id and epoch.
        asked = 0 if voter == NO_NODE else epoch
        self._send(voter, asked, None, lambda answer: self._discovered(voter, answer))

    # -- one fetch ---------------------------------------------------------------------------------

    def _fetch(self, turn: int) -> None:
        if turn != self._turn or turn == self._asked or self._leader == NO_NODE:
            return
        if self._log.synced_end.offset < self._log.end.offset:
            self._log.flush()  # `synced` fetches after the flush
            return
        self._asked = turn
        self._send(self._leader, self._epoch, turn, lambda answer: self._answered(turn, answer))

    def _send(
        self,
        to: NodeId,
        epoch: LeaderEpoch,
        turn: int | None,
        done: Callable[[FetchResponse | Unanswered], None],
    ) -> None:
        channel = self._network.fetch_channel(to, self._owner.step)
        if channel is None:
            done(Unanswered("its address is not known"))
            return
        end = self._log.synced_end
        request = FetchRequest(
            0 if turn is None else FETCH_WAIT_MS,
            0,
            MAX_BYTES,
            topics=[
                (
                    METADATA_TOPIC_ID,
                    [
                        FetchPartition(
                            0,
                            epoch,
                            end.offset,
                            end.epoch,
                            self._log.log.log_start_offset,
                            MAX_BYTES,
                            self._me.directory,
                            self._owner.high_watermark,
                        )
                    ],
                )
            ],
            replica_id=self._me.id,
            cluster_id=self._network.cluster_id,
        )

        def encode(correlation_id: int) -> list[Chunk]:
            return [encode_request(VERSION, correlation_id, f"raft-{self._me.id}", request)]

        decode = partial(decode_response, VERSION)
        channel.request(encode, decode, done, self._network.timeouts.request_ms)

    def _take_records(self, fetched: PartitionFetched) -> None:
        if fetched.error is not ErrorCode.none or fetched.records is None:
            return
        leads = fetched.current_leader is None or fetched.current_leader.leader_epoch == self._epoch
        if leads and isinstance(fetched.records, memoryview):
            self._log.append_fetched(fetched.records)

    def _answered(self, turn: int, answer: FetchResponse | Unanswered) -> None:
        if turn != self._turn:
            return
        self._asked = 0
        fetched = None if isinstance(answer, Unanswered) else _only_partition(answer)
        if fetched is None:
            self._again_later(turn)
            return
        try:
            self._take_records(fetched)
        except MalformedMessage as malformed:
            if (channel := self._network.fetch_channel(self._leader, self._owner.step)) is not None:
                channel.refuse(malformed)
            self._again_later(turn)
            return
        self._owner.log_changed()
        leader = fetched.current_leader
        epoch = leader.leader_epoch if leader is not None else self._epoch
        leads = leader.leader_id if leader is not None else self._leader
        is_success = fetched.error is ErrorCode.none
        self._owner.step(LeaderAnswered(self._leader, epoch, leads, is_success))
        if turn != self._turn:
            return
        if not is_success:
            self._again_later(turn)
        elif fetched.snapshot_id is not None:
            self._download(turn, fetched.snapshot_id, bytearray())
        elif fetched.diverging_epoch is not None:
            self._truncate(fetched)
            self._fetch(turn)
        else:
            self._appended(turn, fetched)

    def _appended(self, turn: int, fetched: PartitionFetched) -> None:
        self._owner.follower_committed(min(fetched.high_watermark, self._log.log.log_end_offset))
        if self._has_all_below(fetched.high_watermark):
            self._owner.caught_up()
        self._fetch(turn)

    def _has_all_below(self, high_watermark: Offset) -> bool:
        """Whether the synced log reaches the leader's high watermark.

        The high watermark must cover a record of the leader's own epoch. Until then, the leader
        itself does not know which records of earlier epochs are committed.
        """
        end = self._log.synced_end
        if end.epoch != self._epoch or end.offset < high_watermark:
            return False
        starts = self._log.log.epoch_starts
        is_after_start = not starts or starts[-1].epoch != self._epoch
        return is_after_start or starts[-1].start_offset < high_watermark

    def _truncate(self, fetched: PartitionFetched) -> None:
        assert fetched.diverging_epoch is not None
        log = self._log.log
        mine = log.epoch_end(fetched.diverging_epoch.epoch)
        cut = truncation_point(fetched.diverging_epoch, mine, log.log_start_offset)
        if cut < self._owner.high_watermark:
            raise UnusableMetadata(
                f"controller {self._leader} leads the quorum without the metadata from offset "
                f"{cut} on, which was committed up to {self._owner.high_watermark} here: it has "
                "lost its log, or it is of another cluster; stop the controllers, keep their "
                "directories, and restore a metadata log that is whole"
            )
        self._log.truncate_to(cut, self._clock.now)
        self._owner.log_changed()
        self._owner.step(LogGrew(self._log.synced_end))

    # -- downloading a snapshot --------------------------------------------------------------------

    def _download(self, turn: int, snapshot: SnapshotId, content: bytearray) -> None:
        """Download the snapshot part by part, because the leader's log lacks the next records."""
        channel = self._network.fetch_channel(self._leader, self._owner.step)
        if channel is None:
            return
        message = wire.fetch_snapshot(
            self._me, self._network.cluster_id, self._epoch, snapshot, len(content), MAX_BYTES
        )
        encode, decode = coded(message, SNAPSHOT_VERSION)
        channel.request(
            encode,
            decode,
            lambda answer: self._downloaded(turn, snapshot, content, answer),
            self._network.timeouts.request_ms,
        )

    def _downloaded(self, turn: int, snapshot: SnapshotId, content: bytearray, answer: Any) -> None:
        if turn != self._turn:
            return
        part = None if isinstance(answer, Unanswered) else wire.snapshot_part(answer)
        if part is None:
            self._again_later(turn)
            return
        self._owner.step(LeaderAnswered(self._leader, self._epoch, self._leader, True))
        content += part[0]
        if len(content) < part[1]:
            self._download(turn, snapshot, content)
        elif self._owner.load_snapshot(snapshot, bytes(content)):
            self._fetch(turn)
        else:
            log.warning("controller %d sent a damaged snapshot of the metadata", self._leader)
            self._again_later(turn, DAMAGED_SNAPSHOT_BACKOFF_MS)

    def _again_later(self, turn: int, at_least_ms: Millis = 0) -> None:
        when = self._clock.now + max(at_least_ms, self._network.timeouts.retry_backoff_ms)
        self._timers.at(when, lambda: self._fetch(turn))

    def _discovered(self, voter: NodeId, answer: FetchResponse | Unanswered) -> None:
        fetched = None if isinstance(answer, Unanswered) else _only_partition(answer)
        if fetched is not None and fetched.current_leader is not None:
            assert not isinstance(answer, Unanswered)
            found = fetched.current_leader
            for node, host, port, *_ in answer.node_endpoints:
                self._network.learn(node, (host, port))
            self._owner.step(LeaderAnswered(voter, found.leader_epoch, found.leader_id, False))


def _only_partition(answer: FetchResponse) -> PartitionFetched | None:
    for topic, partitions in answer.topics:
        if topic == METADATA_TOPIC_ID:
            for fetched in partitions:
                return fetched
    return None
