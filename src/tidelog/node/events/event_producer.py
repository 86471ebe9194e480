"""Writes to the topic `__tidelog_replication_events` with Produce requests to its leader.

The producer is idempotent, uses acks=all and sends one batch at a time. A batch is sent again, with
the same sequence, until it is written or refused with an error that is not retriable. Therefore no
event is written twice or out of order.

The producer creates the topic when it is first needed, with `offsets.topic.replication.factor`
replicas. If fewer brokers are active, the producer waits up to `PLACES_MS` for more brokers. After
that time, it creates the topic with one replica on each active broker.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse

from tidelog.api.groups.internal_topics import creation, replication_events
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER, Millis, ProducerId, TopicPartition
from tidelog.model.outbound import Chunk
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.node.channels import Channels, broker_endpoint
from tidelog.node.clock import Clock
from tidelog.node.controller.broker_lifecycle import Submit
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.peers import Channel, Peers, Unanswered, coded
from tidelog.protocol.produce import (
    ProduceRequest,
    ProduceResponse,
    decode_response,
    encode_request,
)
from tidelog.protocol.records.records import Record, build_batch

PARTITION = TopicPartition(REPLICATION_EVENTS, 0)
RETRY_MS: Millis = 200
ANSWER_MS: Millis = 5_000
PLACES_MS: Millis = 10_000
REQUEST_BYTES = 256
"""The bytes of a request without its batch."""
_CREATION_RETRY_MS: Millis = 1_000
_VERSION, _INIT_VERSION = 9, 4
_CLIENT_ID = "__admin_client"
"""The client id that Kafka allows to write to internal topics."""

_FORGOTTEN = (
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
    ErrorCode.invalid_producer_epoch,
)
"""One of these errors means that the topic was created again or that the producer id has expired.
The producer then gets a new producer id and starts a new sequence.
"""

log = logging.getLogger(__name__)


class EventProducer:
    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        peers: Peers,
        current: CurrentImage,
        submit: Submit,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timers = clock.timers
        self._current = current
        self._submit = submit
        self._channels: Channels[TopicPartition] = Channels(peers)
        self._producer_id: ProducerId = NO_PRODUCER
        self._sequence = 0
        self._records: Sequence[Record] = ()
        self._done: Callable[[bool], None] = lambda _: None
        self._first_needed_at: Millis = -1
        self._creation_asked_at: Millis = -_CREATION_RETRY_MS

    def send(self, records: Sequence[Record], done: Callable[[bool], None]) -> None:
        """Append the records; `done` gets True once they are written, False if they are refused."""
        assert not self._records, "one batch at a time"
        self._records, self._done = records, done
        self._try()

    def _try(self) -> None:
        channel = self._leader()
        if channel is None:
            self._again()
        elif self._producer_id == NO_PRODUCER:
            self._identify(channel)
        else:
            self._produce(channel)

    def _again(self) -> None:
        self._timers.at(self._clock.now + RETRY_MS, self._try)

    # -- the topic and its leader ------------------------------------------------------------------

    def _leader(self) -> Channel | None:
        image = self._current.image
        placed = image.partition(PARTITION)
        if placed is None:
            self._create(image)
            return None
        listener = self._settings.inter_broker_listener_name
        endpoint = broker_endpoint(image, placed.leader, listener)
        if endpoint is None or image.brokers[placed.leader].fenced:
            return None
        return self._channels.get(PARTITION, (endpoint.host, endpoint.port))

    def _create(self, image: ClusterImage) -> None:
        now = self._clock.now
        if self._first_needed_at < 0:
            self._first_needed_at = now
        places = sum(1 for broker in image.brokers.values() if broker.is_active)
        wanted = self._settings.offsets_topic_replication_factor
        is_patient = now - self._first_needed_at < PLACES_MS
        if not places or (places < wanted and is_patient):
            return
        if now - self._creation_asked_at < _CREATION_RETRY_MS:
            return
        self._creation_asked_at = now
        topic = replication_events(min(wanted, places))
        self._submit(creation([topic], self._settings), self._created)

    def _created(self, response: Any) -> None:
        error = response.topics[0].error_code
        if error not in (ErrorCode.none, ErrorCode.topic_already_exists):
            log.warning("%s cannot be created: %s", REPLICATION_EVENTS, error.name)

    # -- requests to the leader --------------------------------------------------------------------

    def _identify(self, channel: Channel) -> None:
        request = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout=timedelta(0),
            producer_id=NO_PRODUCER,
            producer_epoch=-1,
        )
        channel.request(*coded(request, _INIT_VERSION), self._identified, ANSWER_MS)

    def _identified(self, answer: InitProducerIdResponse | Unanswered) -> None:
        if isinstance(answer, Unanswered) or answer.error_code is not ErrorCode.none:
            self._again()
            return
        self._producer_id, self._sequence = answer.producer_id, 0
        self._try()

    def _produce(self, channel: Channel) -> None:
        batch = build_batch(
            self._records,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        if len(batch) + REQUEST_BYTES > self._settings.socket_request_max_bytes:
            # The leader closes the connection if a request is too large, so a retry is useless.
            log.error(
                "a batch of events for %s is too large: %d bytes", REPLICATION_EVENTS, len(batch)
            )
            self._end(is_written=False)
            return
        request = ProduceRequest(
            None, -1, ANSWER_MS, [(REPLICATION_EVENTS, [(0, memoryview(batch))])]
        )

        def encode(correlation_id: int) -> list[Chunk]:
            return [*encode_request(_VERSION, correlation_id, _CLIENT_ID, request)]

        def decode(frame: memoryview) -> ProduceResponse:
            return decode_response(_VERSION, frame)

        channel.request(encode, decode, self._produced, ANSWER_MS + RETRY_MS)

    def _produced(self, answer: ProduceResponse | Unanswered) -> None:
        if isinstance(answer, Unanswered):
            self._again()
            return
        error = answer.topics[0][1][0].error
        if error in (ErrorCode.none, ErrorCode.duplicate_sequence_number):
            self._end(is_written=True)
        elif error in _FORGOTTEN:
            self._producer_id = NO_PRODUCER
            self._again()
        elif error.retriable:
            self._again()
        else:
            log.error("%s does not accept events: %s", REPLICATION_EVENTS, error.name)
            self._producer_id = NO_PRODUCER
            self._end(is_written=False)

    def _end(self, *, is_written: bool) -> None:
        if is_written:
            self._sequence = (self._sequence + len(self._records)) & 0x7FFFFFFF
        self._records, done = (), self._done
        done(is_written)
