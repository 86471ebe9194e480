"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from typing import Any

from tests.clients.parity import case
from tests.clients.talk import Talk

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

BROKER_KEYS = (
    "advertised.listeners", "auto.create.topics.enable", "broker.id", "compression.type",
    "default.replication.factor", "delete.topic.enable", "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms", "group.min.session.timeout.ms", "log.cleanup.policy",
    "log.flush.interval.messages", "log.index.interval.bytes", "log.message.timestamp.type",
    "log.retention.bytes", "log.retention.hours", "log.retention.ms", "log.roll.hours",
    "log.segment.bytes", "log.segment.delete.delay.ms", "message.max.bytes", "min.insync.replicas",
    "node.id", "num.partitions", "offsets.retention.minutes", "offsets.topic.num.partitions",
    "process.roles", "replica.lag.time.max.ms", "socket.request.max.bytes",
    "unclean.leader.election.enable",
)  # fmt: skip
RUN_DEPENDENT = ("advertised.listeners",)


def in_order(answer: dict[str, Any]) -> Any:
    """Sort the configurations, because Kafka returns them in no fixed order."""
    for result in answer["results"]:
        result["configs"].sort(key=lambda config: config["name"])
        for config in result["configs"]:
            if config["name"] in RUN_DEPENDENT:
                config["value"] = "<own>"
                for synonym in config["synonyms"]:
                    synonym["value"] = "<own>"
    return answer


def describe(
    t: Talk, kind: int, name: str, keys: Any = None, version: int | None = None, **f: Any
) -> None:
    body = {
        "resources": [{"resourceType": kind, "resourceName": name, "configurationKeys": keys}],
        **f,
    }
    t.ask_other("DescribeConfigs", t.version if version is None else version, body, only=in_order)


# -- DescribeConfigs -------------------------------------------------------------------------------


@case("DescribeConfigs")
def topic_defaults(t: Talk) -> None:
    topic = t.topic()
    describe(t, TOPIC, topic.name)
    describe(t, TOPIC, topic.name, includeSynonyms=True, includeDocumentation=True)


@case("DescribeConfigs")
def topic_overrides(t: Talk) -> None:
    topic = t.topic(**{"retention.ms": 5, "cleanup.policy": "compact", "flush.messages": 1})
    keys = ["retention.ms", "cleanup.policy", "flush.messages", "segment.bytes"]
    describe(t, TOPIC, topic.name, keys, includeSynonyms=True)


@case("DescribeConfigs")
def some_keys(t: Talk) -> None:
    topic = t.topic()
    describe(t, TOPIC, topic.name, ["retention.ms", "no.such.thing"])
    describe(t, TOPIC, topic.name, [])


@case("DescribeConfigs")
def unknown_resources(t: Talk) -> None:
    for kind, name in (
        (TOPIC, "nowhere"), (TOPIC, ""), (TOPIC, "../../etc"), (TOPIC, "x" * 250), (BROKER, "9"),
        (BROKER, "one"), (0, "x"), (3, "x"), (99, "x"), (-1, "x"),
    ):  # fmt: skip
        describe(t, kind, name)


@case("DescribeConfigs")
def broker_configs(t: Talk) -> None:
    describe(t, BROKER, "1", list(BROKER_KEYS), includeSynonyms=True)


@case("DescribeConfigs")
def cluster_default_configs(t: Talk) -> None:
    describe(t, BROKER, "", list(BROKER_KEYS))


@case("DescribeConfigs")
def same_resource_twice(t: Talk) -> None:
    topic = t.topic()
    resource = {
        "resourceType": TOPIC,
        "resourceName": topic.name,
        "configurationKeys": ["retention.ms"],
    }
    t.ask({"resources": [resource, resource]})
    t.ask({"resources": []})


# -- AlterConfigs, which replaces all overrides ----------------------------------------------------


def alter(t: Talk, kind: int, name: str, configs: dict[str, Any], **fields: Any) -> None:
    pairs = [{"name": key, "value": value} for key, value in configs.items()]
    t.ask({"resources": [{"resourceType": kind, "resourceName": name, "configs": pairs}], **fields})


def overrides(t: Talk, name: str) -> None:
    """Add to the transcript the configurations that are set on this topic."""
    body = {"resources": [{"resourceType": TOPIC, "resourceName": name, "configurationKeys": None}]}
    t.ask_other(
        "DescribeConfigs",
        4,
        body,
        only=lambda answer: sorted(
            (config["name"], config["value"])
            for config in answer["results"][0]["configs"]
            if config["configSource"] == 1
        ),
    )


def settle(t: Talk, name: str, key: str, value: str | None) -> None:
    """Wait until the broker returns this override; it answers before it applies a change."""
    body = {
        "resources": [{"resourceType": TOPIC, "resourceName": name, "configurationKeys": [key]}]
    }

    def shown() -> bool:
        (config,) = t.quietly("DescribeConfigs", 4, body)["results"][0]["configs"]
        return (config["value"] if config["configSource"] == 1 else None) == value

    t.until(shown, f"{key}={value}")


@case("AlterConfigs")
def alter_replaces(t: Talk) -> None:
    topic = t.topic(**{"retention.ms": 5})
    alter(t, TOPIC, topic.name, {"segment.bytes": "1048576"})
    settle(t, topic.name, "segment.bytes", "1048576")
    overrides(t, topic.name)


@case("AlterConfigs")
def alter_refuses(t: Talk) -> None:
    topic = t.topic()
    alter(t, TOPIC, topic.name, {"no.such.thing": "1"})
    alter(t, TOPIC, topic.name, {"retention.ms": "soon"})
    alter(t, TOPIC, topic.name, {"retention.ms": None})
    alter(t, TOPIC, "nowhere", {"retention.ms": "1"})
    alter(t, TOPIC, "", {"retention.ms": "1"})
    alter(t, TOPIC, "../../etc", {"retention.ms": "1"})
    alter(t, BROKER, "9", {"log.cleaner.threads": "2"})
    alter(t, 99, "x", {"retention.ms": "1"})
    overrides(t, topic.name)


@case("AlterConfigs")
def alter_validate_only(t: Talk) -> None:
    topic = t.topic(**{"retention.ms": 5})
    alter(t, TOPIC, topic.name, {"segment.bytes": "1048576"}, validateOnly=True)
    overrides(t, topic.name)


@case("AlterConfigs")
def alter_nothing(t: Talk) -> None:
    t.ask({"resources": []})


# -- IncrementalAlterConfigs -----------------------------------------------------------------------


def change(
    t: Talk, kind: int, name: str, *changes: tuple[str, int, str | None], **fields: Any
) -> None:
    pairs = [{"name": key, "configOperation": how, "value": value} for key, how, value in changes]
    t.ask({"resources": [{"resourceType": kind, "resourceName": name, "configs": pairs}], **fields})


@case("IncrementalAlterConfigs")
def sets_and_deletes(t: Talk) -> None:
    topic = t.topic(**{"retention.ms": 5})
    change(t, TOPIC, topic.name, ("segment.bytes", SET, "1048576"))
    settle(t, topic.name, "segment.bytes", "1048576")
    overrides(t, topic.name)
    change(t, TOPIC, topic.name, ("retention.ms", DELETE, None))
    settle(t, topic.name, "retention.ms", None)
    overrides(t, topic.name)
    change(t, TOPIC, topic.name, ("retention.ms", DELETE, None))


@case("IncrementalAlterConfigs")
def appends_and_subtracts(t: Talk) -> None:
    topic = t.topic()
    change(t, TOPIC, topic.name, ("cleanup.policy", APPEND, "compact"))
    settle(t, topic.name, "cleanup.policy", "delete,compact")
    change(t, TOPIC, topic.name, ("cleanup.policy", SUBTRACT, "delete"))
    settle(t, topic.name, "cleanup.policy", "compact")
    change(t, TOPIC, topic.name, ("cleanup.policy", APPEND, "compact"))
    overrides(t, topic.name)


@case("IncrementalAlterConfigs")
def change_refuses(t: Talk) -> None:
    topic = t.topic()
    for key, how, value in (
        ("no.such.thing", SET, "1"),
        ("no.such.thing", DELETE, None),
        ("retention.ms", SET, "soon"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "1"),
        ("retention.ms", SUBTRACT, "1"),
        ("retention.ms", 9, "1"),
        ("cleanup.policy", APPEND, "shred"),
        ("", SET, "1"),
    ):
        change(t, TOPIC, topic.name, (key, how, value))
    change(t, TOPIC, topic.name, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    change(t, TOPIC, topic.name, ("retention.ms", SET, "1"), ("segment.bytes", SET, "x"))
    overrides(t, topic.name)


@case("IncrementalAlterConfigs")
def change_unknown_resources(t: Talk) -> None:
    for kind, name in ((TOPIC, "nowhere"), (TOPIC, ""), (TOPIC, "../../etc"), (99, "x")):
        change(t, kind, name, ("retention.ms", SET, "1"))


@case("IncrementalAlterConfigs")
def change_validate_only(t: Talk) -> None:
    topic = t.topic()
    change(t, TOPIC, topic.name, ("retention.ms", SET, "1"), validateOnly=True)
    change(t, TOPIC, topic.name, ("retention.ms", SET, "x"), validateOnly=True)
    overrides(t, topic.name)


@case("IncrementalAlterConfigs")
def change_twice_in_one(t: Talk) -> None:
    topic = t.topic()
    pairs = [{"name": "retention.ms", "configOperation": SET, "value": "7"}]
    resource = {"resourceType": TOPIC, "resourceName": topic.name, "configs": pairs}
    t.ask({"resources": [resource, resource]})
    t.ask({"resources": []})
