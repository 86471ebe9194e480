"""IncrementalAlterConfigs and AlterConfigs: changes, and the errors of Apache Kafka."""

from typing import Any

import pytest
from kio.schema.alter_configs.v2.request import AlterableConfig as WholeConfig
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as WholeResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.unit.controller.support import after, ask, cluster, partition

from tidelog.controller.image.image import ClusterImage
from tidelog.protocol.metadata.metadata_records import ClearElrRecord, ConfigRecord

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

Resource = tuple[int, str, list[tuple[str, int, str | None]]]


def changes(*resources: Resource, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def image_with(configs: dict[tuple[int, str], dict[str, str]] | None = None) -> ClusterImage:
    return cluster(3, {"t": partition()}, configs)


def altered(image: ClusterImage, *resources: Resource) -> ClusterImage:
    decision = ask(image, changes(*resources))
    assert {one.error_code.name for one in decision.response.responses} == {"none"}
    return after(image, decision)


def refusal(image: ClusterImage, *resources: Resource) -> tuple[str, str | None]:
    decision = ask(image, changes(*resources))
    assert decision.records == ()
    first = decision.response.responses[0]
    return first.error_code.name, first.error_message


# -- Accepted changes ------------------------------------------------------------------------------


def test_a_key_is_set_and_deleted() -> None:
    image = altered(image_with(), (TOPIC, "t", [("retention.ms", SET, "5000")]))
    assert image.config(TOPIC, "t") == {"retention.ms": "5000"}

    image = altered(image, (TOPIC, "t", [("retention.ms", DELETE, None)]))
    assert image.config(TOPIC, "t") == {}


def test_appending_begins_with_the_default_and_adds_nothing_twice() -> None:
    image = altered(image_with(), (TOPIC, "t", [("cleanup.policy", APPEND, "compact")]))
    assert image.config(TOPIC, "t") == {"cleanup.policy": "delete,compact"}

    again = ask(image, changes((TOPIC, "t", [("cleanup.policy", APPEND, "compact")])))
    assert again.records == (), "nothing to change"

    image = altered(image, (TOPIC, "t", [("cleanup.policy", SUBTRACT, "delete")]))
    assert image.config(TOPIC, "t") == {"cleanup.policy": "compact"}


def test_a_cluster_wide_list_grows_from_its_default() -> None:
    image = altered(image_with(), (BROKER, "", [("log.cleanup.policy", APPEND, "compact")]))

    assert image.config(BROKER, "") == {"log.cleanup.policy": "delete,compact"}


def test_deleting_what_was_never_set_is_no_fault() -> None:
    decision = ask(image_with(), changes((TOPIC, "t", [("foo", DELETE, None)])))

    assert decision.records == ()
    assert decision.response.responses[0].error_code.name == "none"


def test_validation_changes_nothing() -> None:
    decision = ask(
        image_with(), changes((TOPIC, "t", [("retention.ms", SET, "1")]), validate_only=True)
    )

    assert decision.records == ()
    assert decision.response.responses[0].error_code.name == "none"


def test_a_refused_resource_holds_back_no_other() -> None:
    decision = ask(
        image_with(),
        changes(
            (TOPIC, "nope", [("retention.ms", SET, "1")]),
            (TOPIC, "t", [("retention.ms", SET, "1")]),
        ),
    )

    assert [one.error_code.name for one in decision.response.responses] == [
        "unknown_topic_or_partition",
        "none",
    ]
    assert len(decision.records) == 1


def test_a_broker_is_told_again_of_the_same_value() -> None:
    image = image_with({(BROKER, "1"): {"num.io.threads": "9"}})
    decision = ask(image, changes((BROKER, "1", [("num.io.threads", SET, "9")])))

    assert decision.records == (
        ConfigRecord(resource_type=BROKER, resource_name="1", name="num.io.threads", value="9"),
    )


def test_keys_that_are_nobodys_are_kept_for_brokers() -> None:
    image = altered(image_with(), (BROKER, "1", [("my.plugin.key", SET, "9")]))

    assert image.config(BROKER, "1") == {"my.plugin.key": "9"}


def test_another_minimum_of_in_sync_replicas_clears_the_eligible_ones() -> None:
    image = image_with()
    for_topic = ask(image, changes((TOPIC, "t", [("min.insync.replicas", SET, "2")])))
    for_all = ask(image, changes((BROKER, "", [("min.insync.replicas", SET, "2")])))

    assert for_topic.records[-1] == ClearElrRecord(topic_name="t")
    assert for_all.records[-1] == ClearElrRecord(topic_name="")
    without = ask(
        cluster(3, {"t": partition()}, elr=False),
        changes((TOPIC, "t", [("min.insync.replicas", SET, "2")])),
    )
    assert len(without.records) == 1


# -- Refused changes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "error", "message"),
    [
        (
            (TOPIC, "t", [("retention.ms", SET, "x")]),
            "invalid_config",
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        ((TOPIC, "t", [("foo", SET, "x")]), "invalid_config", "Unknown topic config name: foo"),
        (
            (TOPIC, "t", [("tidelog.table.mode", SET, "merge")]),
            "invalid_config",
            "Invalid value merge for configuration tidelog.table.mode: String must be one of: "
            "append, upsert, history",
        ),
        (
            (TOPIC, "t", [("retention.ms", APPEND, "1")]),
            "invalid_config",
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            (TOPIC, "t", [("cleanup.policy", APPEND, "foo")]),
            "invalid_config",
            "Invalid value foo for configuration cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            (TOPIC, "nope", [("retention.ms", SET, "1")]),
            "unknown_topic_or_partition",
            "The topic 'nope' does not exist.",
        ),
        (
            (TOPIC, "", [("retention.ms", SET, "1")]),
            "invalid_request",
            "Default topic resources are not allowed.",
        ),
        (
            (TOPIC, "a b", [("retention.ms", SET, "1")]),
            "invalid_topic_exception",
            "Topic name is invalid: 'a b' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            (TOPIC, "t", [("retention.ms", SET, None)]),
            "invalid_request",
            "Null value not supported for : retention.ms",
        ),
        (
            (TOPIC, "t", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
            "invalid_request",
            "Error due to duplicate config keys",
        ),
        (
            (TOPIC, "t", [("retention.ms", 7, "1")]),
            "invalid_request",
            "Unknown config operation 7 for retention.ms",
        ),
        (
            (TOPIC, "t", [("retention.ms", SET, "1" * 40_000)]),
            "invalid_config",
            "The configuration value cannot be added because it exceeds the maximum value size "
            "of 32767 bytes.",
        ),
        (
            (BROKER, "1", [("node.id", SET, "9")]),
            "invalid_request",
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            (BROKER, "", [("advertised.listeners", SET, "PLAINTEXT://:1")]),
            "invalid_request",
            "Cannot update these configs dynamically: [advertised.listeners]",
        ),
        (
            (BROKER, "x", [("num.io.threads", SET, "9")]),
            "invalid_request",
            "Node id must be an integer, but it is: x",
        ),
        (
            (BROKER, "9", [("num.io.threads", SET, "9")]),
            "broker_id_not_registered",
            "No broker with id 9 found.",
        ),
        (
            (BROKER, "1", [("log.segment.bytes", SET, "abc")]),
            "invalid_request",
            "Invalid value abc for configuration log.segment.bytes: Not a number of type INT",
        ),
        (
            (BROKER, "1", [("min.insync.replicas", SET, "1")]),
            "invalid_config",
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            (BROKER, "", [("min.insync.replicas", DELETE, None)]),
            "invalid_config",
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        ((99, "1", [("x", SET, "9")]), "invalid_request", "Unknown resource type 99"),
        ((0, "1", [("x", SET, "9")]), "invalid_request", "Unknown resource type 0"),
        (
            (METRICS, "", [("interval.ms", SET, "60000")]),
            "invalid_request",
            "Subscription name can't be empty",
        ),
        (
            (METRICS, "m", [("foo", SET, "1")]),
            "invalid_request",
            "Unknown client metrics configuration: foo",
        ),
        (
            (METRICS, "m", [("interval.ms", SET, "50")]),
            "invalid_request",
            "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            (METRICS, "m", [("interval.ms", SET, "x")]),
            "invalid_config",
            "Invalid value x for configuration interval.ms: Not a number of type INT",
        ),
        (
            (METRICS, "m", [("match", SET, "foo=bar")]),
            "invalid_config",
            "Illegal client matching pattern: foo=bar",
        ),
        (
            (METRICS, "m", [("match", SET, "client_id=(")]),
            "invalid_config",
            "Illegal client matching pattern: client_id=(",
        ),
        (
            (GROUP, "", [("consumer.session.timeout.ms", SET, "1")]),
            "invalid_request",
            "Default group resources are not allowed.",
        ),
        (
            (GROUP, "g", [("foo", SET, "1")]),
            "invalid_config",
            "Unknown group config name: foo",
        ),
        (
            (GROUP, "g", [("consumer.session.timeout.ms", SET, "x")]),
            "invalid_config",
            "Invalid value x for configuration consumer.session.timeout.ms: "
            "Not a number of type INT",
        ),
        (
            (GROUP, "g", [("consumer.session.timeout.ms", SET, "1")]),
            "invalid_config",
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            (GROUP, "g", [("consumer.heartbeat.interval.ms", SET, "50000")]),
            "invalid_config",
            "consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
    ],
)
def test_a_refusal_has_kafkas_error_and_words(resource: Resource, error: str, message: str) -> None:
    assert refusal(image_with(), resource) == (error, message)


def test_groups_and_client_metrics_are_configured() -> None:
    image = altered(
        image_with(),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "46000")]),
        (METRICS, "m", [("match", SET, "client_id=app-.*"), ("interval.ms", SET, "60000")]),
    )

    assert image.config(GROUP, "g") == {"consumer.session.timeout.ms": "46000"}
    assert image.config(METRICS, "m")["interval.ms"] == "60000"


def test_a_resource_named_twice_is_refused_both_times() -> None:
    twice: Resource = (TOPIC, "t", [("retention.ms", SET, "1")])
    responses = ask(image_with(), changes(twice, twice)).response.responses

    assert [(one.error_code.name, one.error_message) for one in responses] == [
        ("invalid_request", "Each resource must appear at most once.")
    ] * 2


def test_values_that_contradict_each_other_are_refused_though_each_is_fine() -> None:
    image = image_with({(TOPIC, "t"): {"max.compaction.lag.ms": "5"}})

    assert refusal(image, (TOPIC, "t", [("min.compaction.lag.ms", SET, "10")])) == (
        "invalid_config",
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
    )


# -- AlterConfigs ----------------------------------------------------------------------------------


def whole(kind: int, name: str, configs: dict[str, str | None], **more: Any) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=(
            WholeResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(WholeConfig(name=key, value=value) for key, value in configs.items()),
            ),
        ),
        validate_only=more.get("validate_only", False),
    )


def test_the_old_way_replaces_everything() -> None:
    image = image_with({(TOPIC, "t"): {"retention.ms": "1", "flush.ms": "2"}})
    decision = ask(image, whole(TOPIC, "t", {"flush.ms": "3"}))

    assert after(image, decision).config(TOPIC, "t") == {"flush.ms": "3"}
    emptied = ask(image, whole(TOPIC, "t", {}))
    assert after(image, emptied).config(TOPIC, "t") == {}


def test_the_old_way_validates_too() -> None:
    image = image_with()
    decision = ask(image, whole(TOPIC, "t", {"flush.ms": "3"}, validate_only=True))
    assert decision.records == ()

    (refused,) = ask(image, whole(TOPIC, "t", {"retention.ms": None})).response.responses
    assert (refused.error_code.name, refused.error_message) == (
        "invalid_request",
        "Null value not supported for : retention.ms",
    )


def test_the_old_way_may_not_drop_the_clusters_minimum() -> None:
    image = image_with({(BROKER, ""): {"min.insync.replicas": "1"}})
    (refused,) = ask(image, whole(BROKER, "", {"log.retention.ms": "1"})).response.responses

    assert refused.error_message == (
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    )
