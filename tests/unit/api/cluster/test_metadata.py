"""Metadata: topics, leaders and brokers in the answers of each version."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from tests.unit.api.support import (
    CLUSTER_ID,
    OFFSETS_ID,
    TOPIC_ID,
    Effects,
    ask,
    broker,
    decoded,
    drive,
    image,
    partition,
    request,
    settings,
    topic,
)

from tidelog.api.cluster import metadata
from tidelog.controller.image.image import LOST_DIRECTORY
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

KEY = 3
ALL_TOPIC_OPERATIONS, ALL_CLUSTER_OPERATIONS = 3576, 8096
NOT_ASKED = -(2**31)


def by_name(*names: str | None):
    return tuple(MetadataRequestTopic(topic_id=None, name=name) for name in names)


def by_id(*ids: UUID):
    return tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids)


def answer(topics, version: int = 13, results=(), fields=None, **changes):
    message = ask(KEY, topics=topics, **{"allow_auto_topic_creation": False, **(fields or {})})
    asked = request(message, version, **changes)
    return decoded(drive(metadata.handle(asked), *results), KEY, version)


def errors(response) -> dict[str | None, ErrorCode]:
    return {found.name: found.error_code for found in response.topics}


def test_describes_brokers_and_a_topic():
    response = answer(by_name("orders"))

    assert response.cluster_id == CLUSTER_ID
    assert [(b.node_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (1, "host1", 9092, "rack1"),
        (2, "host2", 9093, "rack2"),
    ]
    [found] = response.topics
    assert (found.name, found.topic_id, found.is_internal) == ("orders", TOPIC_ID, False)
    assert [(p.partition_index, p.leader_id, p.leader_epoch) for p in found.partitions] == [
        (0, 1, 4),
        (1, 2, 4),
        (2, 1, 4),
    ]
    assert all(p.replica_nodes == p.isr_nodes == (1, 2) for p in found.partitions)
    assert response.error_code is ErrorCode.none


def test_the_answering_broker_takes_controller_requests():
    assert answer((), node_id=2).controller_id == 2
    assert answer((), node_id=7).controller_id == 1
    assert answer((), image=image(brokers={})).controller_id == -1


def test_no_topics_is_none_of_them_and_null_is_all():
    two = image(topic("b", UUID(int=2), partition()), topic("a", UUID(int=1), partition()))

    assert answer((), image=two).topics == ()
    assert [found.name for found in answer(None, image=two).topics] == ["a", "b"]


def test_an_internal_topic_says_so():
    offsets = image(topic("__consumer_offsets", OFFSETS_ID, partition()))

    [found] = answer(by_name("__consumer_offsets"), image=offsets).topics

    assert found.is_internal


def test_names_that_no_topic_has_and_names_that_none_can_have():
    response = answer(by_name("nope", "a b", "", "..", "x" * 250, "orders", "orders"))

    assert errors(response) == {
        "nope": ErrorCode.unknown_topic_or_partition,
        "a b": ErrorCode.invalid_topic_exception,
        "": ErrorCode.invalid_topic_exception,
        "..": ErrorCode.invalid_topic_exception,
        "x" * 250: ErrorCode.invalid_topic_exception,
        "orders": ErrorCode.none,
    }


def test_topics_by_id():
    unknown = UUID(int=99)

    known, missing = answer(by_id(TOPIC_ID, unknown)).topics

    assert (known.name, known.error_code) == ("orders", ErrorCode.none)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code is ErrorCode.unknown_topic_id


def test_a_topic_with_neither_name_nor_id():
    response = answer(by_name("orders", None))

    assert errors(response) == dict.fromkeys(["orders", ""], ErrorCode.unknown_server_error)
    assert response.error_code is ErrorCode.unknown_server_error
    assert response.brokers == ()


def test_ids_win_over_names():
    assert errors(answer(by_name("nope", None) + by_id(TOPIC_ID))) == {"orders": ErrorCode.none}


@pytest.mark.parametrize("topics", [by_id(TOPIC_ID), by_name(None)])
def test_versions_10_and_11_know_no_ids_yet(topics):
    response = answer(topics, version=11)

    assert [found.error_code for found in response.topics] == [ErrorCode.invalid_request]
    assert response.brokers == ()


def test_authorized_operations_are_everything_when_asked_for():
    wanted = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }

    asked = answer(by_name("orders", "nope"), version=10, fields=wanted)
    not_asked = answer(by_name("orders"), version=10)

    assert {t.topic_authorized_operations for t in asked.topics} == {ALL_TOPIC_OPERATIONS}
    assert asked.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert not_asked.topics[0].topic_authorized_operations == NOT_ASKED
    assert not_asked.cluster_authorized_operations == NOT_ASKED


# -- Leaders and replicas that a client cannot reach -----------------------------------------------


def one_partition(found):
    [only] = found.topics[0].partitions
    return only


def test_a_partition_without_a_leader():
    leaderless = image(topic("t", TOPIC_ID, partition(leader=-1, isr=(1,))))

    found = one_partition(answer(by_name("t"), image=leaderless))

    assert (found.error_code, found.leader_id) == (ErrorCode.leader_not_available, -1)
    assert found.leader_epoch == 4


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.leader_not_available), (6, ErrorCode.listener_not_found)],
)
def test_a_leader_that_does_not_have_the_clients_listener(version: int, error: ErrorCode):
    elsewhere = image(
        topic("t", TOPIC_ID, partition(leader=2)),
        brokers={1: broker(1), 2: broker(2, listeners=["INSIDE"])},
    )

    found = one_partition(answer(by_name("t"), version=version, image=elsewhere))

    assert (found.error_code, found.leader_id) == (error, -1)


def test_endpoints_are_those_of_the_clients_listener():
    inside = image(brokers={1: broker(1, listeners=["PLAINTEXT", "INSIDE"]), 2: broker(2)})

    response = answer((), image=inside, listener="INSIDE")

    assert [node.node_id for node in response.brokers] == [1]


def test_replicas_on_fenced_brokers_are_offline():
    half = image(
        topic("t", TOPIC_ID, partition()), brokers={1: broker(1), 2: broker(2, fenced=True)}
    )

    response = answer(by_name("t"), image=half)

    assert one_partition(response).offline_replicas == (2,)
    assert [node.node_id for node in response.brokers] == [1]


def test_a_broker_that_has_just_gone_is_listed_but_is_no_place_for_a_replica():
    half = image(
        topic("t", TOPIC_ID, partition()), brokers={1: broker(1, fenced=True), 2: broker(2)}
    )
    effects = Effects()
    effects.gone = (1, 3)

    answer = effects.drive(metadata.handle(request(ask(KEY, topics=None), 13, image=half)))

    response = decoded(answer, KEY, 13)
    assert [node.node_id for node in response.brokers] == [1, 2]
    assert one_partition(response).offline_replicas == (1,)


def test_replicas_in_lost_directories_are_offline():
    known, unknown = UUID(int=50), UUID(int=51)
    directories = image(
        topic(
            "t",
            TOPIC_ID,
            partition(directories=(known, LOST_DIRECTORY)),
            partition(directories=(unknown, UUID(int=0))),
        ),
        brokers={1: replace(broker(1), directories=(known,)), 2: broker(2)},
    )

    [found] = answer(by_name("t"), image=directories).topics

    assert [p.offline_replicas for p in found.partitions] == [(2,), (1,)]


def test_version_0_hides_replicas_that_are_out_of_reach():
    half = image(
        topic("t", TOPIC_ID, partition()), brokers={1: broker(1), 2: broker(2, fenced=True)}
    )

    found = one_partition(answer(by_name("t"), version=0, image=half))

    assert found.error_code is ErrorCode.replica_not_available
    assert (found.replica_nodes, found.isr_nodes) == ((1,), (1,))


# -- Automatic creation of topics ------------------------------------------------------------------


def create(names, **changes):
    """Ask for topics that may be created; return the effects and the answer."""
    message = ask(KEY, topics=by_name(*names), allow_auto_topic_creation=True)
    effects = Effects("the controller's response")
    answered = effects.drive(metadata.handle(request(message, 13, **changes)))
    return effects.asked, decoded(answered, KEY, 13)


def test_a_missing_topic_is_created_and_the_client_is_to_ask_again():
    asked, response = create(["fresh"], settings=settings(num_partitions="3"))

    [effect] = asked
    assert isinstance(effect, ChangeMetadata)
    assert isinstance(effect.request, CreateTopicsRequest)
    [wanted] = effect.request.topics
    assert (wanted.name, wanted.num_partitions, wanted.replication_factor) == ("fresh", 3, 1)
    assert errors(response) == {"fresh": ErrorCode.unknown_topic_or_partition}


def test_only_what_is_missing_and_well_formed_is_created():
    [effect], _ = create(["orders", "fresh", "a b", "fresh"])

    assert [wanted.name for wanted in effect.request.topics] == ["fresh"]


def test_internal_topics_are_created_with_their_own_settings():
    [effect], _ = create(["__consumer_offsets", "__transaction_state", "__share_group_state"])

    offsets, transactions, shares = effect.request.topics
    assert offsets.num_partitions == 50
    assert {c.name: c.value for c in offsets.configs} == {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "producer",
    }
    assert {c.name: c.value for c in transactions.configs}["min.insync.replicas"] == "2"
    assert {c.name: c.value for c in shares.configs}["retention.ms"] == "-1"


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"allow_auto_topic_creation": False}, {}),
        (
            {"allow_auto_topic_creation": True},
            {"settings": settings(auto_create_topics_enable="false")},
        ),
    ],
)
def test_nothing_is_created_unless_client_and_broker_both_allow_it(fields, changes):
    response = answer(by_name("nope"), fields=fields, **changes)

    assert errors(response) == {"nope": ErrorCode.unknown_topic_or_partition}


def test_nothing_is_created_for_ids():
    response = answer(by_id(UUID(int=9)), fields={"allow_auto_topic_creation": True})

    assert [found.error_code for found in response.topics] == [ErrorCode.unknown_topic_id]
