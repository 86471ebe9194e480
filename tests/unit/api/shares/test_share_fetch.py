"""ShareFetch and ShareAcknowledge: sessions, acknowledgements, records and errors."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.share_acknowledge.v2 import request as ack
from kio.schema.share_fetch.v2 import request as share
from tests.unit.api.support import TOPIC_ID, image, request

from tidelog.api.handler import Request
from tidelog.api.records.share_sessions import ShareSessions
from tidelog.api.shares import share_fetch
from tidelog.model.errors import ErrorCode
from tidelog.model.share_effects import (
    AcknowledgeRecords,
    AcquireRecords,
    RecordsAcknowledged,
    RecordsAcquired,
    ReleaseRecords,
)

ENABLED = image(features={"share.version": 1})


class Member:
    """A member of a share group, and what the node answers to its effects."""

    def __init__(self) -> None:
        self.sessions = ShareSessions(5)
        self.effects: list[Any] = []
        self.acquired = RecordsAcquired(ErrorCode.none, None, b"batches", ((3, 5, 1),))
        self.acknowledged = RecordsAcknowledged(ErrorCode.none)
        self.when_acknowledged: Callable[[], object] = lambda: None

    def fetch(self, epoch: int, *acks: tuple[int, int, tuple[int, ...]], **changes: Any) -> Any:
        batches = tuple(
            share.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=kinds
            )
            for first, last, kinds in acks
        )
        partition = share.FetchPartition(partition_index=0, acknowledgement_batches=batches)
        message = share.ShareFetchRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            max_wait=timedelta(milliseconds=500),
            min_bytes=1,
            max_bytes=1000,
            max_records=10,
            batch_size=10,
            topics=(share.FetchTopic(topic_id=TOPIC_ID, partitions=(partition,)),),
            forgotten_topics_data=(),
        )
        return self._run(share_fetch.fetch, replace(message, **changes))

    def acknowledge(self, epoch: int, *kinds: int) -> Any:
        batch = ack.AcknowledgementBatch(first_offset=3, last_offset=3, acknowledge_types=kinds)
        partition = ack.AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,))
        message = ack.ShareAcknowledgeRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            topics=(ack.AcknowledgeTopic(topic_id=TOPIC_ID, partitions=(partition,)),),
        )
        return self._run(share_fetch.acknowledge, message)

    def _run(self, handler: Any, message: Any, shown: Any = ENABLED) -> Any:
        asked: Request = request(message, 2, image=shown, share_sessions=self.sessions)
        handling = handler(asked)
        answer = None
        while True:
            try:
                effect = handling.send(answer)
            except StopIteration as ended:
                return ended.value
            self.effects.append(effect)
            match effect:
                case AcquireRecords():
                    answer = [self.acquired for _ in effect.partitions]
                case AcknowledgeRecords():
                    self.when_acknowledged()
                    answer = [self.acknowledged for _ in effect.acknowledgements]
                case ReleaseRecords():
                    answer = None


def only(response: Any) -> Any:
    ((row,),) = (topic.partitions for topic in response.responses)
    return row


def test_a_session_fetches_records() -> None:
    member = Member()

    row = only(member.fetch(0))

    assert (row.error_code, row.records) == (ErrorCode.none, b"batches")
    (acquired,) = row.acquired_records
    assert (acquired.first_offset, acquired.last_offset, acquired.delivery_count) == (3, 5, 1)
    assert member.effects[0].max_wait_ms == 500


def test_a_later_fetch_names_only_changes() -> None:
    member = Member()
    member.fetch(0)

    row = only(member.fetch(1, topics=()))

    assert row.partition_index == 0


def test_acknowledgements_come_first_and_the_fetch_does_not_wait() -> None:
    member = Member()
    member.fetch(0)

    row = only(member.fetch(1, (3, 5, (1,))))

    acknowledged, acquired = member.effects[-2:]
    assert acknowledged.acknowledgements[0].batches == ((3, 5, (1,)),)
    assert acquired.max_wait_ms == 0
    assert row.acknowledge_error_code == 0


@pytest.mark.parametrize(
    ("epoch", "acks", "changes", "error"),
    [
        (1, (), {}, ErrorCode.share_session_not_found),
        (0, ((3, 5, (1,)),), {}, ErrorCode.invalid_request),
        (0, (), {"member_id": None}, ErrorCode.invalid_request),
        (0, (), {"group_id": None}, ErrorCode.invalid_request),
    ],
)
def test_refused_fetches(epoch: int, acks: Any, changes: Any, error: ErrorCode) -> None:
    assert Member().fetch(epoch, *acks, **changes).error_code is error


def test_malformed_acknowledgements_are_refused_for_their_partition() -> None:
    member = Member()
    member.fetch(0)

    row = only(member.fetch(1, (5, 3, (1,))))

    assert row.acknowledge_error_code == ErrorCode.invalid_request.value
    assert row.records == b"batches"


def test_a_renewal_acquires_nothing() -> None:
    member = Member()
    member.fetch(0)
    quiet = {"max_wait": timedelta(), "min_bytes": 0, "max_records": 0}

    assert only(member.fetch(1, (3, 3, (4,)), is_renew_ack=True, **quiet)).records == b""
    assert isinstance(member.effects[-1], AcknowledgeRecords)
    assert member.fetch(2, is_renew_ack=True).error_code is ErrorCode.invalid_request


def test_the_last_fetch_releases_what_the_member_holds() -> None:
    member = Member()
    member.fetch(0)

    member.fetch(-1, topics=())

    assert isinstance(member.effects[-1], ReleaseRecords)
    assert len(member.sessions) == 0


def test_an_unknown_topic_has_its_own_error() -> None:
    member = Member()
    message = member.fetch(0)
    assert only(message).error_code is ErrorCode.none

    gone = member._run(
        share_fetch.fetch, _last_message(member), image(features=ENABLED.features, topic_names={})
    )

    assert only(gone).error_code is ErrorCode.unknown_topic_id


def _last_message(member: Member) -> share.ShareFetchRequest:
    return share.ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=1,
        max_wait=timedelta(),
        min_bytes=1,
        max_bytes=1000,
        max_records=10,
        batch_size=10,
        topics=(),
        forgotten_topics_data=(),
    )


def test_acknowledgements_alone() -> None:
    member = Member()
    member.fetch(0)

    assert only(member.acknowledge(1, 1)).error_code is ErrorCode.none
    assert member.acknowledge(1, 1).error_code is ErrorCode.invalid_share_session_epoch
    assert member.acknowledge(0, 1).error_code is ErrorCode.invalid_share_session_epoch
    assert only(member.acknowledge(-1, 2)).error_code is ErrorCode.none
    assert member.acknowledge(3, 1).error_code is ErrorCode.share_session_not_found


def test_the_feature_is_needed() -> None:
    member = Member()

    response = member._run(share_fetch.fetch, _last_message(member), image(features={}))

    assert response.error_code is ErrorCode.unsupported_version


def test_a_session_with_too_many_partitions_ends() -> None:
    """A client could otherwise add partitions of topics that do not exist for ever."""
    member = Member()
    member.fetch(0)
    partitions = tuple(
        share.FetchPartition(partition_index=index, acknowledgement_batches=())
        for index in range(share_fetch.MOST_PARTITIONS)
    )
    topics = (share.FetchTopic(topic_id=UUID(int=99), partitions=partitions),)

    answer = member.fetch(1, topics=topics)

    assert answer.error_code is ErrorCode.invalid_request
    assert isinstance(member.effects[-1], ReleaseRecords)
    assert len(member.sessions) == 0


def test_a_session_that_ends_while_acknowledgements_are_stored_acquires_nothing() -> None:
    member = Member()
    member.fetch(0)
    member.when_acknowledged = lambda: member.sessions.connection_lost(1)

    member.fetch(1, (3, 5, (1,)))

    assert isinstance(member.effects[-1], AcknowledgeRecords)
