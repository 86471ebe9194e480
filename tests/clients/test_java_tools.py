"""Apache Kafka's own command-line tools, whose Java clients are idempotent by default."""

import json
import re
from pathlib import Path

import pytest
from tests.clients.java import Tools
from tests.clients.librdkafka import create, producer_of, read, send, send_values
from tests.clients.samples import BASE_TIME, CODECS, Sample, numbered
from tests.clients.systems import Broker


@pytest.fixture
def tools(broker: Broker, tmp_path: Path) -> Tools:
    return Tools(broker, tmp_path)


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer(tools: Tools, topic: str, codec: str) -> None:
    create(tools.broker, topic)
    lines = [f"h1:a,h2:{n}\tkey{n}\tvalue {n}" for n in range(100)]
    idempotent = "true" if codec != "gzip" else "false"
    tools.run(
        "kafka-console-producer", "--topic", topic, "--compression-codec", codec,
        "--command-property", f"enable.idempotence={idempotent}",
        "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
        stdin="\n".join(lines) + "\n",
    )  # fmt: skip
    seen = tools.run(
        "kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "100",
        "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true",
    )  # fmt: skip
    assert [line for line in seen.splitlines() if line.startswith("h1")] == lines
    samples = read(tools.broker, topic, 100)
    assert samples[7].headers == (("h1", b"a"), ("h2", b"7"))
    assert (samples[7].key, samples[7].value) == (b"key7", b"value 7")


def test_console_consumer_prints_timestamps_nulls_and_offsets(tools: Tools, topic: str) -> None:
    create(tools.broker, topic)
    sent = [Sample(b"k", None, (), BASE_TIME), Sample(None, b"v", (("h", None),), BASE_TIME + 1)]
    send(producer_of(tools.broker), topic, sent)
    wanted = [
        f"print.{what}=true" for what in ("timestamp", "offset", "partition", "headers", "key")
    ]
    properties = [word for each in wanted for word in ("--formatter-property", each)]
    seen = tools.run(
        "kafka-console-consumer", "--topic", topic, "--partition", "0", "--offset", "0",
        "--max-messages", "2", *properties,
    )  # fmt: skip
    assert f"CreateTime:{BASE_TIME}\tPartition:0\tOffset:0\tNO_HEADERS\tk\tnull" in seen
    assert f"CreateTime:{BASE_TIME + 1}\tPartition:0\tOffset:1\th:null\tnull\tv" in seen


@pytest.mark.parametrize("codec", CODECS)
def test_perf_tools(tools: Tools, topic: str, codec: str) -> None:
    create(tools.broker, topic, 3)
    acks = {"none": "all", "gzip": "1", "snappy": "all", "lz4": "0", "zstd": "all"}[codec]
    output = tools.run(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "20000",
        "--record-size", "200",
        "--throughput", "-1", "--command-property", f"acks={acks}", f"compression.type={codec}",
        f"enable.idempotence={'true' if acks == 'all' else 'false'}",
    )  # fmt: skip
    assert "20000 records sent" in output
    output = tools.run(
        "kafka-consumer-perf-test", "--topic", topic, "--num-records", "20000", "--hide-header",
        "--timeout", "60000",
    )  # fmt: skip
    (line,) = [row for row in output.splitlines() if row.count(",") > 5]
    assert int(line.split(",")[4]) == 20000


def test_topics(tools: Tools, topic: str) -> None:
    name = ("--topic", topic)
    tools.run(
        "kafka-topics", "--create", *name, "--partitions", "2", "--config", "retention.ms=777"
    )
    described = tools.run("kafka-topics", "--describe", *name)
    assert re.search(r"PartitionCount:\s*2\s+ReplicationFactor:\s*1", described)
    assert "retention.ms=777" in described
    assert re.search(r"Partition:\s*1\s+Leader:\s*1\s+Replicas:\s*1\s+Isr:\s*1", described)
    assert topic in tools.run("kafka-topics", "--list").splitlines()
    tools.run("kafka-topics", "--alter", *name, "--partitions", "4")
    assert re.search(r"PartitionCount:\s*4", tools.run("kafka-topics", "--describe", *name))
    for flag in (
        "--under-replicated-partitions",
        "--under-min-isr-partitions",
        "--unavailable-partitions",
    ):
        assert "Partition:" not in tools.run("kafka-topics", "--describe", *name, flag)
    tools.run("kafka-topics", "--delete", *name)
    assert topic not in tools.run("kafka-topics", "--list").splitlines()
    with pytest.raises(AssertionError, match="does not exist"):
        tools.run("kafka-topics", "--describe", *name)


def test_configs(tools: Tools, topic: str) -> None:
    create(tools.broker, topic)
    where = ("--entity-type", "topics", "--entity-name", topic)
    tools.run(
        "kafka-configs",
        "--alter",
        *where,
        "--add-config",
        "retention.ms=4242,cleanup.policy=compact",
    )
    described = tools.run("kafka-configs", "--describe", *where)
    assert "retention.ms=4242" in described
    assert "cleanup.policy=compact" in described
    tools.run("kafka-configs", "--alter", *where, "--delete-config", "retention.ms")
    assert "retention.ms=4242" not in tools.run("kafka-configs", "--describe", *where)
    everything = tools.run("kafka-configs", "--describe", "--all", *where)
    assert "segment.bytes=1073741824" in everything
    with pytest.raises(AssertionError, match="Unknown topic config name"):
        tools.run("kafka-configs", "--alter", *where, "--add-config", "no.such.thing=1")


def test_broker_configs_are_listed(tools: Tools) -> None:
    output = tools.run(
        "kafka-configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1"
    )
    assert "node.id=1" in output
    assert "replica.lag.time.max.ms=30000" in output


def test_offsets_and_deletion(tools: Tools, topic: str) -> None:
    create(tools.broker, topic, 2)
    times = [Sample(None, b"v", (), BASE_TIME + n) for n in (0, 9, 5)]
    send(producer_of(tools.broker), topic, times, 0)
    send_values(producer_of(tools.broker), topic, numbered(10), 1)

    def offsets(when: str) -> list[str]:
        output = tools.run("kafka-get-offsets", "--topic", topic, "--time", when)
        return [line for line in output.splitlines() if line.startswith(f"{topic}:")]

    assert offsets("latest") == [f"{topic}:0:3", f"{topic}:1:10"]
    assert offsets("max-timestamp")[0] == f"{topic}:0:1"
    assert offsets(str(BASE_TIME + 1))[0] == f"{topic}:0:1"
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 1, "offset": 4}]}
    path = tools.file("delete.json", json.dumps(plan))
    output = tools.run("kafka-delete-records", "--offset-json-file", path)
    assert re.search(r"low_watermark:\s*4", output)
    assert offsets("earliest") == [f"{topic}:0:0", f"{topic}:1:4"]


def test_log_dirs(tools: Tools, topic: str) -> None:
    create(tools.broker, topic, 2)
    send_values(producer_of(tools.broker), topic, numbered(10))
    output = tools.run("kafka-log-dirs", "--describe", "--topic-list", topic)
    report = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    (directory,) = report["brokers"][0]["logDirs"]
    assert directory["logDir"] == str(tools.broker.data)
    sizes = {found["partition"]: found["size"] for found in directory["partitions"]}
    assert sizes[f"{topic}-0"] > 1000
    assert sizes[f"{topic}-1"] == 0


def test_consumer_groups(tools: Tools, topic: str) -> None:
    create(tools.broker, topic, 2)
    send_values(producer_of(tools.broker), topic, numbered(10), 0)
    send_values(producer_of(tools.broker), topic, numbered(20), 1)
    tools.run(
        "kafka-console-consumer", "--topic", topic, "--group", topic, "--from-beginning",
        "--max-messages", "30",
    )  # fmt: skip
    assert topic in tools.run("kafka-consumer-groups", "--list").split()

    def lag() -> dict[int, tuple[int, ...]]:
        output = tools.run("kafka-consumer-groups", "--describe", "--group", topic)
        rows = [line.split() for line in output.splitlines() if line.startswith(topic)]
        return {int(row[2]): tuple(int(value) for value in row[3:6]) for row in rows}

    assert lag() == {0: (10, 10, 0), 1: (20, 20, 0)}
    reset = (
        "--reset-offsets",
        "--group",
        topic,
        "--topic",
        f"{topic}:1",
        "--to-offset",
        "5",
        "--execute",
    )
    tools.run("kafka-consumer-groups", *reset)
    assert lag() == {0: (10, 10, 0), 1: (5, 20, 15)}
    tools.run("kafka-consumer-groups", "--delete", "--group", topic)
    assert topic not in tools.run("kafka-consumer-groups", "--list").split()


def test_api_versions(tools: Tools) -> None:
    output = tools.run("kafka-broker-api-versions")
    assert f"{tools.broker.bootstrap} (id: 1 rack: null" in output
    assert re.search(r"Produce\(0\): 0 to \d+ \[usable: \d+\]", output)
    assert re.search(r"Fetch\(1\): 4 to \d+ \[usable: \d+\]", output)
