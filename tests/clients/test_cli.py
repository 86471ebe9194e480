"""Tidelog's command line and Kafka's tools on one broker: equal flags give equal output."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.clients.java import Tools, run_tool
from tests.clients.librdkafka import create, producer_of, read, send, send_values
from tests.clients.samples import CODECS, SAMPLES
from tests.clients.systems import PATIENCE, Broker

from tidelog.client.partitioner import partition_for

TEXTS = [sample for sample in SAMPLES if (sample.value or b"").isascii()]
"""The samples that Java prints in the same way in every locale."""


class Cli:
    """The command `tidelog`, connected to one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def run(self, command: str, *arguments: str, stdin: str = "", status: int = 0) -> str:
        """The output of the command; if `status` is not 0, its error message."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tidelog.cli.main", command),
                *("--bootstrap-server", self._broker.bootstrap),
                *arguments,
            ],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if status else done.stdout


def ordered(described: str) -> str:
    """The description with sorted configurations; Java prints them in hash order."""
    return re.sub(
        r"(?<=Configs: ).*",
        lambda found: ",".join(sorted(re.split(r",(?=[a-z.]+=)", found[0]))),
        described,
    )


@pytest.fixture
def cli(broker: Broker) -> Cli:
    return Cli(broker)


@pytest.fixture
def tools(broker: Broker, tmp_path: Path) -> Tools:
    return Tools(broker, tmp_path)


def test_topics_are_created_described_altered_and_deleted(
    cli: Cli, tools: Tools, topic: str
) -> None:
    name = ("--topic", topic)
    configs = ("--config", "retention.ms=600000", "--config", "cleanup.policy=compact,delete")
    assert cli.run("topics", "--create", *name, "--partitions", "2", *configs).endswith(
        f"Created topic {topic}.\n"
    )
    assert cli.run("topics", "--create", *name, "--if-not-exists").count("Created") == 0
    cli.run("topics", "--alter", *name, "--partitions", "3")
    for describe in (
        ("--describe", *name),
        ("--describe", *name, "--at-min-isr-partitions"),
        ("--describe", *name, "--topics-with-overrides"),
        ("--describe", *name, "--under-replicated-partitions"),
        ("--list",),
    ):
        assert ordered(cli.run("topics", *describe)) == ordered(
            tools.run("kafka-topics", *describe)
        )
    cli.run("topics", "--delete", *name)
    assert topic not in cli.run("topics", "--list").splitlines()
    cli.run("topics", "--delete", *name, "--if-exists")


def test_a_replica_assignment_is_followed(cli: Cli, topic: str) -> None:
    cli.run("topics", "--create", "--topic", topic, "--replica-assignment", "1,1")
    alter = ("--partitions", "3", "--replica-assignment", "1,1,1")
    cli.run("topics", "--alter", "--topic", topic, *alter)
    assert "PartitionCount: 3\t" in cli.run("topics", "--describe", "--topic", topic)


def test_a_topic_is_described_by_its_id(cli: Cli, tools: Tools, topic: str) -> None:
    create(tools.broker, topic)
    described = cli.run("topics", "--describe", "--topic", topic)
    topic_id = described.split("TopicId: ")[1].split()[0]
    by_id = ("--describe", "--topic-id", topic_id)
    assert ordered(cli.run("topics", *by_id)) == ordered(tools.run("kafka-topics", *by_id))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--create", "--topic", "bad/name"], "bad/name"),
        (["--create", "--topic", "x", "--config", "nope=1"], "Unknown topic config name: nope"),
        (["--create", "--topic", "x", "--replication-factor", "9"], "replication factor"),
        (["--describe", "--topic", "absent"], "Topic 'absent' does not exist as expected."),
        (["--delete", "--topic", "absent"], "Topic 'absent' does not exist as expected."),
        (["--alter", "--topic", "absent", "--partitions", "2"], "does not exist as expected."),
    ],
)
def test_a_refusal_is_one_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    said = cli.run("topics", *arguments, status=1)
    assert sentence in said
    assert said.startswith("tidelog: ")
    assert said.count("\n") == 1


def test_configurations_read_as_in_kafkas_tool(cli: Cli, tools: Tools, topic: str) -> None:
    create(tools.broker, topic)
    name = ("--entity-type", "topics", "--entity-name", topic)
    alter = ("--alter", *name, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]")
    assert cli.run("configs", *alter) == f"Completed updating config for topic {topic}.\n"
    cli.run("configs", "--alter", "--topic", topic, "--delete-config", "retention.ms")
    for describe in (
        ("--describe", *name),
        ("--describe", "--topic", topic, "--all"),
        ("--describe", "--entity-type", "brokers", "--entity-name", "1"),
        ("--describe", "--entity-type", "brokers", "--entity-default"),
    ):
        assert cli.run("configs", *describe) == tools.run("kafka-configs", *describe)


@pytest.mark.parametrize("codec", CODECS)
def test_lines_go_in_and_come_out(cli: Cli, broker: Broker, topic: str, codec: str) -> None:
    create(broker, topic, 3)
    lines = [f"key{n % 7}:value {n}" for n in range(500)]
    flags = ("--key-separator", ":", "--compression-codec", codec)
    cli.run("produce", "--topic", topic, *flags, stdin="\n".join(lines) + "\n")
    seen = cli.run(
        *("consume", "--topic", topic, "--from-beginning", "--max-messages", "500"),
        *("--property", "print.key=true", "--property", "key.separator=:"),
    ).splitlines()
    assert sorted(seen) == sorted(lines)
    for key in range(7):
        of_key = f"key{key}:"
        assert [s for s in seen if s.startswith(of_key)] == [
            line for line in lines if line.startswith(of_key)
        ], "records of one key keep their order"
    # Each key is in the partition that a Java producer would choose.
    placed = [line for line in lines if partition_for(line.split(":")[0].encode(), 3) == 0]
    found = [(sample.key, sample.value) for sample in read(broker, topic, len(placed))]
    assert found == [tuple(map(str.encode, line.split(":"))) for line in placed]


@pytest.mark.parametrize("codec", CODECS)
def test_consume_prints_what_kafkas_tool_prints(
    cli: Cli, tools: Tools, topic: str, codec: str
) -> None:
    create(tools.broker, topic)
    send(producer_of(tools.broker, **{"compression.type": codec}), topic, TEXTS)
    columns = ("timestamp", "partition", "offset", "headers", "key")
    properties = [w for c in columns for w in ("--formatter-property", f"print.{c}=true")]
    count = ("--from-beginning", "--max-messages", str(len(TEXTS)))
    ours = cli.run("consume", "--topic", topic, *count, *properties)
    theirs = tools.run("kafka-console-consumer", "--topic", topic, *count, *properties)
    assert len(ours.splitlines()) == len(TEXTS)
    assert theirs.startswith(ours)  # `theirs` also contains the tool's stderr, at the end


def test_consume_starts_where_it_is_told(cli: Cli, broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, [b"%d" % n for n in range(10)])
    one = ("consume", "--topic", topic, "--partition", "0", "--max-messages", "1")
    assert cli.run(*one, "--offset", "7") == "7\n"
    assert cli.run(*one, "--offset", "earliest") == "0\n"
    assert cli.run(*one, "--offset", "99", "--timeout-ms", "1") == ""
    latest = ("consume", "--topic", topic, "--timeout-ms", "1")
    assert cli.run(*latest) == ""


def test_dump_log_prints_what_kafkas_tool_prints(tools: Tools, topic: str) -> None:
    broker = tools.broker
    create(broker, topic)
    for codec in CODECS:
        send(producer_of(broker, **{"compression.type": codec}), topic, TEXTS)
    for flags, directory in (
        (("--print-data-log",), f"{topic}-0"),
        (("--deep-iteration", "--skip-record-metadata"), f"{topic}-0"),
        (("--cluster-metadata-decoder",), "__cluster_metadata-0"),
    ):
        segment = str(broker.data / directory / "00000000000000000000.log")
        theirs = run_tool(broker.schemas.libs, "kafka-dump-log", *flags, "--files", segment)
        command = [sys.executable, "-m", "tidelog.cli.main", "dump-log", *flags, segment]
        ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        # A running broker keeps writing its metadata log, so compare only the common part.
        shorter = min(len(ours), len(theirs))
        assert shorter > 500
        assert ours[:shorter] == theirs[:shorter]
