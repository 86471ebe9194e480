"""A message of any version is converted to its canonical shape and back without loss."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.add_partitions_to_txn.v3 import response as old_add_partitions
from kio.schema.alter_partition.v2 import request as old_alter_partition
from kio.schema.delete_topics.v5.request import DeleteTopicsRequest as OldDeleteTopicsRequest
from kio.schema.find_coordinator.v3.request import FindCoordinatorRequest as OldFindRequest
from kio.schema.find_coordinator.v3.response import FindCoordinatorResponse as OldFindResponse
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v0.request import JoinGroupRequest as OldJoinGroupRequest
from kio.schema.join_group.v5.response import JoinGroupResponse as OldJoinGroupResponse
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v2.request import LeaveGroupRequest as OldLeaveRequest
from kio.schema.leave_group.v2.response import LeaveGroupResponse as OldLeaveResponse
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.metadata.v0.request import MetadataRequest as OldestMetadataRequest
from kio.schema.metadata.v0.request import MetadataRequestTopic
from kio.schema.metadata.v8.request import MetadataRequest as MetadataRequest8
from kio.schema.metadata.v8.response import MetadataResponse as MetadataResponse8
from kio.schema.metadata.v13 import response as metadata13
from kio.schema.offset_commit.v9 import response as commit9
from kio.schema.offset_commit.v10 import response as commit10
from kio.schema.offset_fetch.v7 import request as fetch7
from kio.schema.offset_fetch.v7 import response as fetch7_response
from kio.static.protocol import Entity
from tests.unit.protocol.entities import (
    EVERY_API_VERSION,
    HAND_TUNED,
    entities,
    written_by_kio,
)

from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import canonical
from tidelog.protocol.messages.canonical import canonical_request, canonical_response
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import request_class, response_class
from tidelog.protocol.messages.versions import lift, lower

PAIRS = [
    (load(api_key, version), shape(api_key))
    for api_key, version in EVERY_API_VERSION
    if api_key not in HAND_TUNED
    for load, shape in ((request_class, canonical_request), (response_class, canonical_response))
]


def name(pair: Any) -> str:
    cls, _ = pair
    return f"{cls.__name__}-v{cls.__version__}"


@pytest.mark.parametrize("pair", PAIRS, ids=name)
@settings(max_examples=3)
@given(data=st.data(), padding=st.binary(max_size=3))
def test_what_kio_writes_is_read_and_nothing_of_it_is_lost(
    pair: tuple[type[Entity], type[Entity]], data: st.DataObject, padding: bytes
) -> None:
    cls, canonical_cls = pair
    entity = data.draw(entities(cls))
    encoded = memoryview(padding + written_by_kio(entity) + padding)

    read = decode(cls, encoded, len(padding))
    lifted = lift(read, canonical_cls)

    assert read == entity
    assert type(lifted) is canonical_cls
    assert lower(lifted, cls) == entity


def fits_old_versions(message: Any) -> bool:
    """Whether old versions can express the message. Some allow only one element, or only names."""
    match type(message).__name__:
        case "FindCoordinatorRequest":
            return len(message.coordinator_keys) == 1
        case "FindCoordinatorResponse":
            return len(message.coordinators) == 1
        case "OffsetFetchRequest" | "OffsetFetchResponse":
            return len(message.groups) == 1
        case "LeaveGroupRequest":
            return len(message.members) == 1
        case "AddPartitionsToTxnRequest":
            return len(message.transactions) == 1
        case "AddPartitionsToTxnResponse":
            return len(message.results_by_transaction) == 1
        case "DeleteTopicsRequest":
            return all(topic.name is not None for topic in message.topics)
    return True


@settings(max_examples=250)
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_every_version_can_be_written_from_the_canonical_shape(
    pair: tuple[type[Entity], type[Entity]], data: st.DataObject
) -> None:
    cls, canonical_cls = pair
    message = data.draw(entities(canonical_cls).filter(fits_old_versions))

    assert written_by_kio(lower(message, cls)) is not None


def test_a_message_of_the_wanted_shape_is_returned_as_it_is() -> None:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")

    assert lift(message, HeartbeatRequest) is message
    assert lower(message, HeartbeatRequest) is message


# -- Messages whose shape changed ------------------------------------------------------------------


def test_find_coordinator_asks_for_one_key_or_for_many() -> None:
    lifted = lift(OldFindRequest(key="g", key_type=0), canonical_request(10))

    assert (lifted.key_type, lifted.coordinator_keys) == (0, ("g",))


def test_the_one_coordinator_found_is_the_answer_to_an_old_client() -> None:
    coordinator = Coordinator(
        key="g", node_id=2, host="h", port=9, error_code=ErrorCode.none, error_message=None
    )
    found = FindCoordinatorResponse(throttle_time=timedelta(), coordinators=(coordinator,))

    assert lower(found, OldFindResponse) == OldFindResponse(
        throttle_time=timedelta(),
        error_code=ErrorCode.none,
        error_message=None,
        node_id=2,
        host="h",
        port=9,
    )


def test_an_old_offset_fetch_is_of_one_group_by_names() -> None:
    topic = fetch7.OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1))
    old = fetch7.OffsetFetchRequest(group_id="g", topics=(topic,), require_stable=True)

    lifted = lift(old, canonical_request(9))

    assert lifted == canonical.OffsetFetchRequest(
        groups=(
            canonical.OffsetFetchRequestGroup(
                group_id="g",
                topics=(
                    canonical.OffsetFetchRequestTopics(
                        name="t", topic_id=None, partition_indexes=(0, 1)
                    ),
                ),
            ),
        ),
        require_stable=True,
    )


def test_an_old_offset_fetch_of_every_topic_stays_one() -> None:
    old = fetch7.OffsetFetchRequest(group_id="g", topics=None, require_stable=False)

    assert lift(old, canonical_request(9)).groups[0].topics is None


def test_the_error_of_its_group_is_the_error_of_an_old_offset_fetch() -> None:
    group = canonical.OffsetFetchResponseGroup(
        group_id="g", topics=(), error_code=ErrorCode.not_coordinator
    )
    response = canonical.OffsetFetchResponse(throttle_time=timedelta(), groups=(group,))

    lowered = lower(response, fetch7_response.OffsetFetchResponse)

    assert (lowered.error_code, lowered.topics) == (ErrorCode.not_coordinator, ())


def test_leaving_a_group_is_one_member_or_many() -> None:
    old = OldLeaveRequest(group_id="g", member_id="m")

    (member,) = lift(old, canonical_request(13)).members

    assert (member.member_id, member.group_instance_id, member.reason) == ("m", None, None)


@pytest.mark.parametrize(
    ("top", "of_member", "expected"),
    [
        (ErrorCode.none, ErrorCode.none, ErrorCode.none),
        (ErrorCode.none, ErrorCode.unknown_member_id, ErrorCode.unknown_member_id),
        (ErrorCode.not_coordinator, ErrorCode.none, ErrorCode.not_coordinator),
    ],
)
def test_an_old_client_that_leaves_sees_the_error_of_its_member(
    top: ErrorCode, of_member: ErrorCode, expected: ErrorCode
) -> None:
    member = MemberResponse(member_id="m", group_instance_id=None, error_code=of_member)
    response = LeaveGroupResponse(throttle_time=timedelta(), error_code=top, members=(member,))

    assert lower(response, OldLeaveResponse).error_code is expected


def test_topics_to_delete_are_names_or_ids() -> None:
    old = OldDeleteTopicsRequest(topic_names=("a", "b"), timeout=timedelta(seconds=1))

    lifted = lift(old, canonical_request(20))

    assert [(topic.name, topic.topic_id) for topic in lifted.topics] == [("a", None), ("b", None)]


@pytest.mark.parametrize(
    ("topics", "expected"),
    [((), None), ((MetadataRequestTopic(name="t"),), ["t"])],
    ids=["none of them", "one"],
)
def test_no_topics_meant_all_of_them_in_the_oldest_metadata_request(
    topics: tuple[MetadataRequestTopic, ...], expected: list[str] | None
) -> None:
    lifted = lift(OldestMetadataRequest(topics=topics), canonical_request(3))

    assert (lifted.topics and [topic.name for topic in lifted.topics]) == expected
    assert lifted.allow_auto_topic_creation


def test_metadata_of_version_8_asks_for_the_operations_allowed_on_the_cluster() -> None:
    old = MetadataRequest8(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=False,
    )
    assert lift(old, canonical_request(3)).include_cluster_authorized_operations

    answer = canonical.MetadataResponse(
        throttle_time=timedelta(),
        brokers=(),
        topics=(),
        error_code=ErrorCode.none,
        cluster_authorized_operations=0b1100,
    )
    assert lower(answer, MetadataResponse8).cluster_authorized_operations == 0b1100


def test_a_response_of_the_newest_class_is_lowered_with_the_defaults_of_what_it_lacks() -> None:
    answer = metadata13.MetadataResponse(
        throttle_time=timedelta(), brokers=(), topics=(), error_code=ErrorCode.none
    )

    assert lower(answer, MetadataResponse8).cluster_authorized_operations == -(2**31)


def test_a_null_becomes_empty_where_a_version_has_no_null() -> None:
    joined = JoinGroupResponse(
        throttle_time=timedelta(),
        error_code=ErrorCode.none,
        generation_id=1,
        protocol_type=None,
        protocol_name=None,
        leader="m",
        skip_assignment=False,
        member_id="m",
        members=(),
    )

    assert lower(joined, OldJoinGroupResponse).protocol_name == ""


def test_the_oldest_join_has_one_timeout_for_session_and_rebalance() -> None:
    old = OldJoinGroupRequest(
        group_id="g",
        session_timeout=timedelta(seconds=9),
        member_id="",
        protocol_type="consumer",
        protocols=(),
    )

    assert lift(old, canonical_request(11)).rebalance_timeout == timedelta(seconds=9)


def test_an_answer_to_a_commit_carries_the_name_or_the_id() -> None:
    partition = commit10.OffsetCommitResponsePartition(partition_index=3, error_code=ErrorCode.none)
    topic_id = UUID(int=7)
    topic = canonical.OffsetCommitResponseTopic(
        name="t", topic_id=topic_id, partitions=(partition,)
    )
    answer = canonical.OffsetCommitResponse(throttle_time=timedelta(), topics=(topic,))

    by_name = lower(answer, commit9.OffsetCommitResponse)
    by_id = lower(answer, commit10.OffsetCommitResponse)

    assert [t.name for t in by_name.topics] == ["t"]
    assert [t.topic_id for t in by_id.topics] == [topic_id]


def test_an_isr_without_epochs_is_one_whose_epochs_are_unknown() -> None:
    partition = old_alter_partition.PartitionData(
        partition_index=0, leader_epoch=1, new_isr=(1, 2), partition_epoch=5
    )
    topic = old_alter_partition.TopicData(topic_id=None, partitions=(partition,))
    old = old_alter_partition.AlterPartitionRequest(broker_id=1, topics=(topic,))

    lifted = lift(old, canonical_request(56)).topics[0].partitions[0]

    assert [(state.broker_id, state.broker_epoch) for state in lifted.new_isr_with_epochs] == [
        (1, -1),
        (2, -1),
    ]


def test_results_of_one_transaction_are_the_answer_to_an_old_producer() -> None:
    partition = old_add_partitions.AddPartitionsToTxnPartitionResult(
        partition_index=0, partition_error_code=ErrorCode.none
    )
    topic = old_add_partitions.AddPartitionsToTxnTopicResult(
        name="t", results_by_partition=(partition,)
    )
    old = old_add_partitions.AddPartitionsToTxnResponse(
        throttle_time=timedelta(), results_by_topic_v3_and_below=(topic,)
    )

    lifted = lift(old, canonical_response(24))

    assert lifted.results_by_transaction[0].topic_results[0].name == "t"
