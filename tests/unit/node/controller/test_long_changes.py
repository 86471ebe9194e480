"""No change of the metadata, however long, blocks a node for longer than a slice (F63)."""

from datetime import timedelta
from typing import Any

from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from tests.unit.api.support import ask
from tests.unit.node.bench import Bench
from tests.unit.node.metered_bench import MeteredBench

from tidelog.model.errors import ErrorCode
from tidelog.node.inspection import NodeInspection

MANY = 9_000
MOST_CALLS = 300_000
"""The most function calls that a decision on `MANY` partitions may make.

Nearly all of these functions are implemented in C, so the calls take about 20 milliseconds.
"""


def creation(name: str, partitions: int) -> Any:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return ask(19, topics=(topic,), timeout=timedelta(seconds=30))


def settle(node: Bench) -> None:
    for _ in range(2 * MANY):
        node.flush()
        node.pass_time(1)
        deadline = node.node.next_deadline()
        if not node.flushes and (deadline is None or deadline > node.now + 1):
            break


def answered(node: Bench, request: Any) -> Any:
    conn = node.connect()
    node.send(conn, request)
    for _ in range(1_000):
        if node.sent[conn]:
            break
        node.flush()
        node.pass_time(1)
    return node.answer(conn, request)


def test_f63_a_topic_of_many_partitions_does_not_block_its_controller() -> None:
    node = MeteredBench()
    node.is_metered = True

    created = answered(node, creation("t", MANY))
    grown = answered(
        node,
        ask(
            37,
            topics=(CreatePartitionsTopic(name="t", count=MANY + 3_000, assignments=None),),
            timeout=timedelta(seconds=30),
        ),
    )

    assert [topic.error_code for topic in created.topics] == [ErrorCode.none]
    assert [topic.error_code for topic in grown.results] == [ErrorCode.none]
    assert len(node.node.image.topics["t"].partitions) == MANY + 3_000
    assert node.most_calls < MOST_CALLS


def test_f63_a_decision_waits_until_an_earlier_long_one_is_written() -> None:
    node = Bench()
    requests = [creation("t", 3_000), creation("t", 1), creation("u", 1)]
    conns = [node.connect() for _ in requests]

    for conn, request in zip(conns, requests, strict=True):
        node.send(conn, request)
    assert "t" not in node.node.image.topics
    settle(node)

    answers = [
        node.answer(conn, request).topics[0].error_code
        for conn, request in zip(conns, requests, strict=True)
    ]
    assert answers == [ErrorCode.none, ErrorCode.topic_already_exists, ErrorCode.none]
    assert list(node.node.image.topics) == ["t", "u"]


def test_f63_others_are_served_while_a_long_decision_is_written() -> None:
    node = Bench()
    node.send(node.connect(), creation("t", 5_000))
    node.pass_time(2)

    versions = ask(18, client_software_name="x", client_software_version="1")
    conn = node.connect()
    node.send(conn, versions)

    assert node.answer(conn, versions).error_code is ErrorCode.none
    assert "t" not in node.node.image.topics


def test_f63_a_new_configuration_of_many_partitions_is_applied_in_slices() -> None:
    node = MeteredBench()
    assert answered(node, creation("t", 2_000)).topics[0].error_code is ErrorCode.none
    settle(node)
    retention = AlterableConfig(name="retention.ms", config_operation=0, value="77777")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(retention,))
    node.is_metered = True

    answered(node, ask(44, resources=(resource,)))
    settle(node)

    assert node.most_calls < 65_000
    held = NodeInspection(node.node).replicas
    assert len(held) == 2_000
    assert {replica.log.config.retention_ms for replica in held} == {77_777}
