"""When one of three voters commits a record; the test acts as the two other voters."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.begin_quorum_epoch.v1 import request as begin
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.end_quorum_epoch.v1 import request as end
from kio.schema.vote.v2 import response as vote
from kio.schema.vote.v2.request import PartitionData as VotePartition
from kio.schema.vote.v2.request import TopicData as VoteTopic
from kio.schema.vote.v2.request import VoteRequest
from tests.unit.api.support import ask
from tests.unit.node.bench import Bench

from tidelog.model.errors import ErrorCode
from tidelog.model.events import PeerConnected
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ConnId, LeaderEpoch, Offset
from tidelog.node.inspection import NodeInspection
from tidelog.protocol import fetch
from tidelog.protocol.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionFetched
from tidelog.protocol.messages.messages import (
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
)
from tidelog.protocol.metadata.codec import encode_record
from tidelog.protocol.metadata.metadata_records import (
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tidelog.protocol.pieces import CurrentLeader
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import ControlType, Record, build_batch, control_key
from tidelog.sim.machines.cluster import CLUSTER_ID

FETCH, VOTE = 1, 52
VERSION = 18
RETRY_MS = 100


class Voter:
    """Node 1 of three; the test acts as its peers 2 and 3."""

    def __init__(self) -> None:
        self.bench = Bench(nodes=3)
        self._places: dict[ConnId, str] = {}
        self._incoming = {peer: self.bench.connect("CONTROLLER") for peer in (2, 3)}

    def asked(self, api_key: int, of: str) -> tuple[ConnId, RequestHeader, Any]:
        """The newest request with this API key that node 1 has sent to a peer."""
        bench = self.bench
        while bench.connects:
            connect = bench.connects.popleft()
            self._places[connect.conn] = connect.host
            bench.tell(PeerConnected(connect.conn))
        for conn, host in reversed(self._places.items()):
            for frame in reversed(bench.sent.get(conn, ())):
                header = decode_request_header(frame)
                if host == of and header.api_key == api_key:
                    body = None
                    if api_key != FETCH:
                        body = decode_request(api_key, header.api_version, frame, header.position)
                    bench.sent[conn].clear()
                    return conn, header, body
        raise AssertionError(f"{of} was not asked for {api_key}")

    def grant_vote(self, epoch: LeaderEpoch) -> None:
        """Peer 3 grants its vote."""
        conn, header, _ = self.asked(VOTE, "node3")
        partition = vote.PartitionData(
            partition_index=0,
            error_code=ErrorCode.none,
            leader_id=-1,
            leader_epoch=epoch,
            vote_granted=True,
        )
        topic = vote.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        answer = vote.VoteResponse(error_code=ErrorCode.none, topics=(topic,))
        frame = encode_response(VOTE, header.api_version, header.correlation_id, answer)
        self.bench.send_frame(conn, frame[4:])

    def begin_epoch(self, epoch: LeaderEpoch) -> None:
        """Peer 2 becomes leader and announces the epoch to node 1."""
        partition = begin.PartitionData(
            partition_index=0, voter_directory_id=None, leader_id=2, leader_epoch=epoch
        )
        topic = begin.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        self.bench.send(
            self._incoming[2],
            begin.BeginQuorumEpochRequest(
                cluster_id=CLUSTER_ID, voter_id=1, topics=(topic,), leader_endpoints=()
            ),
        )

    def end_epoch(self, epoch: LeaderEpoch) -> None:
        """Peer 2 resigns, and names node 1 as its preferred successor."""
        partition = end.PartitionData(
            partition_index=0,
            leader_id=2,
            leader_epoch=epoch,
            preferred_candidates=(end.ReplicaInfo(candidate_id=1, candidate_directory_id=None),),
        )
        topic = end.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        self.bench.send(
            self._incoming[2],
            end.EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=(topic,), leader_endpoints=()),
        )

    def replicate(self, records: bytes, epoch: LeaderEpoch, high_watermark: Offset = 0) -> None:
        """Peer 2 answers the fetch of node 1 with records."""
        conn, header, _ = self.asked(FETCH, "node2")
        fetched = PartitionFetched(
            0,
            ErrorCode.none,
            high_watermark,
            0,
            0,
            records,
            current_leader=CurrentLeader(2, epoch),
        )
        answer = FetchResponse([(METADATA_TOPIC_ID, [fetched])])
        chunks = fetch.encode_response(header.api_version, header.correlation_id, answer)
        self.bench.send_frame(conn, b"".join(map(bytes, chunks))[4:])

    def fetch_by_peer_3(
        self, offset: Offset, last_epoch: LeaderEpoch, epoch: LeaderEpoch
    ) -> PartitionFetched:
        """The answer of node 1 as leader to peer 3, which holds all records below `offset`."""
        partition = FetchPartition(0, epoch, offset, last_epoch, 0, 1 << 20, high_watermark=0)
        request = FetchRequest(
            0,
            0,
            1 << 20,
            topics=[(METADATA_TOPIC_ID, [partition])],
            replica_id=3,
            cluster_id=CLUSTER_ID,
        )
        conn = self._incoming[3]
        self.bench.send_frame(conn, bytes(fetch.encode_request(VERSION, 1, "raft-3", request))[4:])
        answer = fetch.decode_response(VERSION, memoryview(self.bench.sent[conn].popleft()))
        [(_, [fetched])] = answer.topics
        return fetched

    def end_one_flush(self) -> None:
        self.bench.end_one_flush()


def of_epoch_1() -> bytes:
    """The records of leader 2: a leader change at offset 0, and a topic at offset 1."""
    change = Record(control_key(ControlType.LEADER_CHANGE), b"\0\0\0\0\0\2\1\1\0", 0)
    topic = TopicRecord(name="orders", topic_id=UUID(int=7))
    return build_batch([change], 0, leader_epoch=1, is_control=True) + build_batch(
        [Record(None, encode_record(topic), 0)], 1, leader_epoch=1
    )


def test_records_of_an_earlier_epoch_are_committed_only_with_one_of_the_leaders_own() -> None:
    """Raft's commit rule holds even if the new leader syncs the old records after its election."""
    voter = Voter()
    voter.begin_epoch(1)
    voter.replicate(of_epoch_1(), epoch=1)
    assert len(voter.bench.flushes) == 1
    voter.end_epoch(1)
    voter.grant_vote(epoch=1)
    voter.grant_vote(epoch=2)

    voter.end_one_flush()  # syncs epoch 1, but not the leader change of epoch 2
    answer = voter.fetch_by_peer_3(2, last_epoch=1, epoch=2)
    assert answer.error is ErrorCode.none
    assert answer.high_watermark <= 0, "committed by counting replicas of an earlier epoch"
    assert "orders" not in voter.bench.node.image.topics

    [(_, own)] = iterate(memoryview(bytes(answer.records)))
    voter.bench.flush()
    voter.fetch_by_peer_3(own.next_offset, last_epoch=2, epoch=2)
    assert "orders" in voter.bench.node.image.topics


def test_a_leader_that_sends_a_gap_is_asked_again_on_a_new_connection() -> None:
    voter = Voter()
    voter.begin_epoch(1)
    gap = build_batch([Record(None, b"", 0)], 5, leader_epoch=1)
    voter.replicate(gap, epoch=1)
    assert list(voter.bench.closed.values()) == ["sent a bad answer: a batch at 5, not at 0"]

    voter.bench.pass_time(RETRY_MS)
    voter.replicate(of_epoch_1(), epoch=1)
    assert len(voter.bench.flushes) == 1


def many_partitions(base_offset: Offset) -> bytes:
    """One batch of leader 2: a topic with 3,500 partitions."""
    topic_id = UUID(int=9)
    records: list[MetadataRecord] = [TopicRecord(name="many", topic_id=topic_id)]
    records += [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=(2, 3),
            isr=(2, 3),
            leader=2,
            leader_epoch=0,
            partition_epoch=0,
        )
        for index in range(3_500)
    ]
    encoded = [Record(None, encode_record(record), 0) for record in records]
    return build_batch(encoded, base_offset, leader_epoch=1)


def test_f63_a_long_batch_is_applied_in_slices_and_seen_as_a_whole() -> None:
    voter = Voter()
    voter.begin_epoch(1)
    voter.replicate(of_epoch_1() + many_partitions(2), epoch=1, high_watermark=3_503)

    node, slices = voter.bench.node, 0
    assert list(node.image.topics) == ["orders"]
    while "many" not in node.image.topics:
        voter.bench.pass_time(1)
        slices += 1
        assert slices < 100

    assert slices > 3
    assert len(node.image.topics["many"].partitions) == 3_500
    assert node.image.offset == 3_502


def test_f63_a_voter_that_is_elected_while_it_applies_a_long_batch_applies_all_of_it() -> None:
    voter = Voter()
    voter.begin_epoch(1)
    voter.replicate(of_epoch_1() + many_partitions(2), epoch=1, high_watermark=3_503)
    assert "many" not in voter.bench.node.image.topics

    voter.end_epoch(1)
    voter.grant_vote(epoch=1)
    voter.grant_vote(epoch=2)

    assert len(voter.bench.node.image.topics["many"].partitions) == 3_500
    voter.bench.flush()
    voter.fetch_by_peer_3(3_504, last_epoch=2, epoch=2)
    assert voter.bench.node.is_active_controller


def test_f63_a_long_decision_is_dropped_when_the_leadership_is_lost() -> None:
    voter, broker = Voter(), broker_2()
    voter.begin_epoch(1)
    voter.replicate(of_epoch_1() + broker, epoch=1, high_watermark=3)
    voter.end_epoch(1)
    voter.grant_vote(epoch=1)
    voter.grant_vote(epoch=2)
    voter.bench.flush()
    voter.fetch_by_peer_3(4, last_epoch=2, epoch=2)
    assert voter.bench.node.is_active_controller
    end = NodeInspection(voter.bench.node).metadata_log.log_end_offset
    long, short = (
        ask(19, topics=(new_topic(name, count),), timeout=timedelta(seconds=5))
        for name, count in (("long", 3_000), ("short", 1))
    )
    conns = [voter.bench.connect("CONTROLLER") for _ in range(2)]

    voter.bench.send(conns[0], long)
    voter.bench.send(conns[1], short)
    voter.bench.pass_time(2)
    voter.begin_epoch(3)
    voter.bench.pass_time(10)

    for conn, request in zip(conns, (long, short), strict=True):
        [refused] = voter.bench.answer(conn, request).topics
        assert refused.error_code is ErrorCode.not_controller
    assert NodeInspection(voter.bench.node).metadata_log.log_end_offset == end


def broker_2() -> bytes:
    """One batch of leader 2, with its own registration as a broker."""
    record = RegisterBrokerRecord(
        broker_id=2,
        incarnation_id=UUID(int=2),
        broker_epoch=2,
        end_points=(),
        features=(),
        rack=None,
        fenced=False,
    )
    return build_batch([Record(None, encode_record(record), 0)], 2, leader_epoch=1)


def new_topic(name: str, partitions: int) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )


@pytest.mark.parametrize("epoch", [(1 << 30) + 1, (1 << 31) - 1])
def test_an_epoch_that_no_elections_lead_to_is_refused(epoch: int) -> None:
    """A voter in this epoch would have no later epoch for the next election."""
    bench = Bench()
    data = VotePartition(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=2,
        replica_directory_id=None,
        voter_directory_id=None,
        last_offset_epoch=0,
        last_offset=10_000,
        pre_vote=False,
    )
    topic = VoteTopic(topic_name=METADATA_TOPIC, partitions=(data,))
    request = VoteRequest(cluster_id=CLUSTER_ID, voter_id=1, topics=(topic,))
    conn = bench.connect("CONTROLLER")
    bench.send(conn, request)
    assert bench.answer(conn, request).error_code is ErrorCode.invalid_request
    bench.settle()
    assert bench.node.is_active_controller
