"""The producer of replication events; the test gives the answers of the cluster."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from tests.unit.controller.support import broker, cluster, partition, settings
from tests.unit.log.support import NOW

from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.outbound import Connect, Outbound, Send
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.node.clock import Clock
from tidelog.node.events.event_producer import PLACES_MS, RETRY_MS, EventProducer
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Peers
from tidelog.node.ready import ReadyQueue
from tidelog.protocol.messages.messages import decode_request_header, encode_response
from tidelog.protocol.produce import (
    PartitionProduced,
    ProduceResponse,
    decode_request,
)
from tidelog.protocol.produce import encode_response as encode_produced
from tidelog.protocol.records.batch import read_header
from tidelog.protocol.records.records import Record

PRODUCE, INIT_PRODUCER_ID = 0, 22
RECORDS = [Record(b"a-0", b"{}", NOW), Record(b"a-1", b"{}", NOW)]


class ProducerHost:
    def __init__(self, image: ClusterImage, **properties: str) -> None:
        self.current = CurrentImage()
        self.current.image = image
        self.clock, self.ready = Clock(NOW), ReadyQueue()
        self.submitted: list[Any] = []
        self.outcomes: list[bool] = []
        self._sent: list[Outbound] = []
        self._peers = Peers(self.clock, self.ready, self._sent.append)
        self.producer = EventProducer(
            settings(
                {"offsets.topic.replication.factor": "3"}
                | {key.replace("_", "."): value for key, value in properties.items()}
            ),
            self.clock,
            self._peers,
            self.current,
            self._submit,
        )

    def _submit(
        self, message: Any, resume: Callable[[Any], None], patience_ms: int | None = None
    ) -> None:
        self.submitted.append(message)

    def send(self) -> None:
        self.producer.send(RECORDS, self.outcomes.append)

    def wait(self, ms: int = RETRY_MS) -> None:
        end = self.clock.now + ms
        while (deadline := self.clock.timers.next_deadline()) is not None and deadline <= end:
            self.clock.now = deadline
            self.clock.timers.fire(deadline, self.ready.run)
        self.clock.now = end

    def asked(self) -> tuple[int, int, memoryview, int]:
        """The request in progress: its connection, API key and frame, and where its body begins."""
        sent = list(self._sent)
        self._sent.clear()
        for one in sent:
            if isinstance(one, Connect):
                channel = self._peers.find(one.conn)
                assert channel is not None
                self.ready.run(channel.connected)
                return self.asked()
        (request,) = [one for one in sent if isinstance(one, Send)]
        frame = memoryview(b"".join(bytes(chunk) for chunk in request.chunks))[4:]
        header = decode_request_header(frame)
        self._conn, self._correlation_id = request.conn, header.correlation_id
        return request.conn, header.api_key, frame, header.position

    def answer(self, frame: bytes) -> None:
        channel = self._peers.find(self._conn)
        assert channel is not None
        self.ready.run(channel.received, memoryview(frame)[4:])

    def identify(self, producer_id: int = 7) -> None:
        assert self.asked()[1] == INIT_PRODUCER_ID
        response = InitProducerIdResponse(
            throttle_time=timedelta(0),
            error_code=ErrorCode.none,
            producer_id=producer_id,
            producer_epoch=0,
        )
        self.answer(encode_response(INIT_PRODUCER_ID, 4, self._correlation_id, response))

    def produced(self) -> tuple[int, int, int]:
        """Producer id, first sequence and number of records of the batch in progress."""
        _, key, frame, position = self.asked()
        assert key == PRODUCE
        request = decode_request(9, frame, position)
        assert request.acks == -1
        [(_, [(_, records)])] = request.topics
        assert records is not None
        header = read_header(records)
        return header.producer_id, header.base_sequence, header.record_count

    def say(self, error: ErrorCode) -> None:
        response = ProduceResponse([(REPLICATION_EVENTS, [PartitionProduced(0, error)])])
        self.answer(bytes(encode_produced(9, self._correlation_id, response)))

    def lose_connection(self) -> None:
        channel = self._peers.find(self._conn)
        assert channel is not None
        self.ready.run(channel.disconnected)


def with_topic() -> ClusterImage:
    return cluster(3, {REPLICATION_EVENTS: partition()})


def ready() -> ProducerHost:
    host = ProducerHost(with_topic())
    host.send()
    host.identify()
    assert host.produced() == (7, 0, 2)
    return host


def test_what_is_acknowledged_is_done_and_the_next_batch_follows_in_sequence() -> None:
    host = ready()
    host.say(ErrorCode.none)
    assert host.outcomes == [True]

    host.send()

    assert host.produced() == (7, 2, 2)


@pytest.mark.parametrize(
    "error", [ErrorCode.not_leader_or_follower, ErrorCode.not_enough_replicas_after_append]
)
def test_what_may_have_been_written_is_repeated_under_its_sequence(error: ErrorCode) -> None:
    host = ready()
    host.say(error)
    assert host.outcomes == []

    host.wait()

    assert host.produced() == (7, 0, 2)
    host.say(ErrorCode.duplicate_sequence_number)
    assert host.outcomes == [True]


def test_a_lost_connection_is_no_reason_to_write_twice() -> None:
    host = ready()
    host.lose_connection()
    host.wait()
    assert host.produced() == (7, 0, 2)


def test_a_topic_that_does_not_know_the_producer_is_written_to_by_a_new_one() -> None:
    host = ready()
    host.say(ErrorCode.out_of_order_sequence_number)
    host.wait()
    host.identify(8)
    assert host.produced() == (8, 0, 2)


def test_what_can_never_be_written_is_given_up() -> None:
    host = ready()
    host.say(ErrorCode.message_too_large)
    assert host.outcomes == [False]


def test_without_a_leader_nothing_is_sent_until_there_is_one() -> None:
    host = ProducerHost(cluster(3, {REPLICATION_EVENTS: partition(leader=-1, isr=())}))
    host.send()
    host.wait(60_000)
    host.current.image = with_topic()

    host.wait()
    host.identify()

    assert (host.submitted, host.produced()) == ([], (7, 0, 2))


def test_the_topic_is_made_once_there_are_brokers_for_it() -> None:
    host = ProducerHost(cluster([broker(1)]))
    host.send()
    host.wait(1_000)
    assert host.submitted == []

    host.current.image = cluster(3)
    host.wait()

    [request] = host.submitted
    assert [(one.name, one.replication_factor) for one in request.topics] == [
        (REPLICATION_EVENTS, 3)
    ]


def test_a_cluster_that_stays_small_gets_a_small_topic() -> None:
    host = ProducerHost(cluster([broker(1), broker(2, fenced=True)]))
    host.send()

    host.wait(PLACES_MS)

    assert host.submitted[0].topics[0].replication_factor == 1


def test_f60_events_that_no_leader_would_read_are_given_up() -> None:
    host = ProducerHost(with_topic(), socket_request_max_bytes="1000")
    host.producer.send([Record(b"a-0", bytes(1_000), NOW)], host.outcomes.append)
    host.identify()
    assert host.outcomes == [False]
