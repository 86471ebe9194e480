"""The effective configuration, its sources, and its synonyms as Apache Kafka lists them."""

from tests.unit.controller.support import SETTINGS, cluster, partition, settings

from tidelog.controller.configs.effective import (
    ConfigSource,
    broker_config,
    cluster_config,
    topic_config,
    topic_defaults,
    topic_value,
    with_overrides,
)
from tidelog.controller.image.image import ClusterImage

TOPIC, BROKER = 2, 4
STATIC = {
    "log.retention.hours": "100",
    "log.roll.ms": "3600000",
    "log.roll.hours": "7",
    "log.segment.bytes": "20000000",
}


def image(configs: dict[tuple[int, str], dict[str, str]] | None = None) -> ClusterImage:
    return cluster(1, {"t": partition((1,))}, configs)


def test_a_topic_that_sets_nothing_has_kafkas_defaults() -> None:
    found = topic_config(image(), SETTINGS, "t")

    assert len(found) == 33
    assert {config.source for config in found.values()} == {ConfigSource.DEFAULT_CONFIG}
    assert found["retention.ms"].value == 604_800_000
    assert found["cleanup.policy"].text == "delete"
    assert found["preallocate"].text == "false"
    assert found["min.cleanable.dirty.ratio"].text == "0.5"


def test_synonyms_are_listed_from_the_most_to_the_least_telling() -> None:
    configs = {
        (TOPIC, "t"): {"retention.ms": " 99 "},
        (BROKER, ""): {"log.retention.ms": "880000", "log.cleanup.policy": "delete,compact"},
        (BROKER, "1"): {"log.cleanup.policy": "delete,compact"},
    }
    found = topic_config(image(configs), settings(STATIC), "t")

    assert (found["retention.ms"].text, found["retention.ms"].source) == ("99", 1)
    assert found["retention.ms"].synonyms == (
        ("retention.ms", "99", 1),
        ("log.retention.ms", "880000", 3),
        ("log.retention.hours", "100", 4),
        ("log.retention.hours", "168", 5),
    )
    assert (found["cleanup.policy"].text, found["cleanup.policy"].source) == ("delete,compact", 2)
    assert found["cleanup.policy"].synonyms == (
        ("log.cleanup.policy", "delete,compact", 2),
        ("log.cleanup.policy", "delete,compact", 3),
        ("log.cleanup.policy", "delete", 5),
    )
    assert (found["segment.ms"].value, found["segment.ms"].source) == (3_600_000, 4)
    assert found["segment.ms"].synonyms == (
        ("log.roll.ms", "3600000", 4),
        ("log.roll.hours", "7", 4),
        ("log.roll.hours", "168", 5),
    )
    assert found["segment.bytes"].synonyms == (
        ("log.segment.bytes", "20000000", 4),
        ("log.segment.bytes", "1073741824", 5),
    )


def test_other_units_are_converted() -> None:
    hours = topic_config(image(), settings(STATIC), "t")["retention.ms"]
    minutes = settings({"log.retention.hours": "100", "log.retention.minutes": "3"})
    forever = settings({"log.retention.hours": "-1"})

    assert (hours.value, hours.source, hours.synonyms) == (360_000_000, 4, ())
    assert topic_value(image(), minutes, "t", "retention.ms") == 180_000
    assert topic_value(image(), forever, "t", "retention.ms") == -1
    assert topic_value(image(), settings({"log.flush.interval.ms": "5"}), "t", "flush.ms") == 5


def test_single_values_and_whole_configurations_agree() -> None:
    configs = {(TOPIC, "t"): {"retention.ms": "99"}, (BROKER, ""): {"message.max.bytes": "5000"}}
    for using in (SETTINGS, settings(STATIC)):
        defaults = topic_defaults(image(configs), using)
        values = with_overrides(defaults, image(configs).config(TOPIC, "t"))
        for name, config in topic_config(image(configs), using, "t").items():
            assert topic_value(image(configs), using, "t", name) == config.value == values[name]
    assert with_overrides(defaults, {}) is defaults


def test_a_stored_value_that_is_no_value_is_passed_over() -> None:
    configs = {(BROKER, "1"): {"log.segment.bytes": "abc", "log.retention.ms": "-9"}}

    assert topic_value(image(configs), SETTINGS, "t", "segment.bytes") == 1_073_741_824
    assert topic_value(image(configs), SETTINGS, "t", "retention.ms") == 604_800_000


def test_an_internal_key_is_shown_only_where_it_is_set() -> None:
    configs = {(TOPIC, "t"): {"internal.segment.bytes": "1000"}}

    assert topic_config(image(configs), SETTINGS, "t")["internal.segment.bytes"].value == 1000
    assert "internal.segment.bytes" not in topic_config(image(), SETTINGS, "t")


def test_a_brokers_own_configuration() -> None:
    configs = {
        (BROKER, ""): {"log.retention.ms": "880000"},
        (BROKER, "1"): {"message.max.bytes": "7"},
    }
    found = broker_config(image(configs), settings(STATIC))

    assert (found["node.id"].value, found["node.id"].source) == (1, 4)
    assert found["message.max.bytes"].synonyms == (
        ("message.max.bytes", "7", 2),
        ("message.max.bytes", "1048588", 5),
    )
    assert found["log.retention.ms"].synonyms == (
        ("log.retention.ms", "880000", 3),
        ("log.retention.hours", "100", 4),
        ("log.retention.hours", "168", 5),
    )
    assert found["log.roll.jitter.ms"].value is None
    assert found["log.roll.jitter.ms"].synonyms == ()
    assert found["log.roll.hours"].synonyms == (
        ("log.roll.hours", "7", 4),
        ("log.roll.hours", "168", 5),
    )


def test_what_is_set_for_all_brokers() -> None:
    configs = {(BROKER, ""): {"log.retention.ms": "880000", "some.plugin": "x"}}

    (config,) = cluster_config(image(configs)).values()
    assert (config.key.name, config.value, config.source) == ("log.retention.ms", 880_000, 3)
    assert config.synonyms == (("log.retention.ms", "880000", 3),)
