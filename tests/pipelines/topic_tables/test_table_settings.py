"""The settings of a table, from a topic's configuration and from a file."""

from pathlib import Path

import pytest

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.topic_tables import run
from tidelog_pipelines.jobs.topic_tables.table_plans import TablePlans
from tidelog_pipelines.jobs.topic_tables.table_settings import (
    DEFAULT,
    TableSettings,
    of_configuration,
    of_file,
)
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.tables import Layout
from tidelog_pipelines.sources.registry import Registry
from tidelog_pipelines.transformations.values.decoding import Raw, Text


def test_a_topic_is_a_table_if_its_configuration_says_so() -> None:
    assert of_configuration({}) is None
    assert of_configuration({"tidelog.table.enable": "false"}) is None
    assert of_configuration({"tidelog.table.enable": "true"}) == DEFAULT
    assert of_configuration(
        {
            "tidelog.table.enable": "true",
            "tidelog.table.value.format": "text",
            "tidelog.table.mode": "upsert",
            "tidelog.table.partition.by": " date, partition",
            "tidelog.table.retention.ms": "5000",
            "tidelog.table.format": "iceberg",
        }
    ) == TableSettings("text", "upsert", ("date", "partition"), 5000, table_format="iceberg")
    clustered = {"tidelog.table.enable": "true", "tidelog.table.cluster.by": "key,value.id"}
    by_key = DEFAULT._replace(partition_by=(), cluster_by=("key", "value.id"))
    assert of_configuration(clustered) == by_key
    unpartitioned = {"tidelog.table.enable": "true", "tidelog.table.partition.by": ""}
    assert of_configuration(unpartitioned) == DEFAULT._replace(partition_by=())


def test_a_file_has_a_section_per_topic(tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(
        '[orders]\n["my.notes"]\nvalue-format = "text"\npartition-by = "partition"\n'
        "[clicks]\npartition-by = []\nretention-ms = 60000\n[visits]\ncluster-by = ['key']\n"
        '[ice]\nformat = "iceberg"\n'
    )
    assert of_file(str(file)) == {
        "orders": DEFAULT,
        "my.notes": TableSettings("text", partition_by=("partition",)),
        "clicks": TableSettings(partition_by=(), retention_ms=60_000),
        "visits": TableSettings(partition_by=(), cluster_by=("key",)),
        "ice": TableSettings(table_format="iceberg"),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[orders", "is not TOML"),
        ("orders = 1", r"orders is not a section such as \[orders\]"),
        ("[orders]\nlayout = 'x'", "has no setting 'layout'; there are format, value-format, mode"),
        ("[orders]\nformat = 'json'", "format is one of delta, iceberg, not 'json'"),
        ("[orders]\nformat = ''", "format is one of delta, iceberg, not ''"),
        ("[orders]\nvalue-format = 'xml'", "value-format is one of json, text, .* not 'xml'"),
        ("[orders]\nmode = ['append']", r"mode is one of append, .* not \['append'\]"),
        ("[orders]\npartition-by = 'key'", "partition-by is one of date, partition, not 'key'"),
        ("[orders]\npartition-by = 3", "partition-by is one of date, partition, not '3'"),
        ("[orders]\nretention-ms = 0", "retention-ms is a number of at least 1, or -1"),
        ("[orders]\nretention-ms = true", "retention-ms is a number of at least 1, or -1"),
    ],
)
def test_a_file_with_an_error_is_refused_with_a_sentence(
    tmp_path: Path, text: str, complaint: str
) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(text)
    with pytest.raises(JobFailed, match=complaint):
        of_file(str(file))


def test_a_file_that_is_not_utf_8_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_bytes(b"# gr\xfcn\n[orders]\n")
    with pytest.raises(JobFailed, match=r"tables\.toml is not TOML: "):
        of_file(str(file))


def test_each_format_has_its_decoder() -> None:
    plans = TablePlans(KafkaSettings(), "/out", Registry(""), compact_every=20)
    assert plans.of(DEFAULT).value is None
    assert plans.of(DEFAULT._replace(format="text")).value == Text()
    raw = plans.of(TableSettings("raw", partition_by=("partition",)), "/out/checkpoints/1")
    assert (raw.value, raw.layout) == (Raw(), Layout(("partition",)))
    assert raw.checkpoint == "/out/checkpoints/1"
    clustered = DEFAULT._replace(partition_by=(), cluster_by=("key",))
    assert plans.of(clustered).layout == Layout(cluster_by=("key",))
    with pytest.raises(ValueError, match="either partitioned or clustered, not both"):
        plans.of(clustered._replace(partition_by=("date",)))
    with pytest.raises(ValueError, match=r"cluster\.by needs a table of format delta"):
        plans.of(clustered._replace(table_format="iceberg"))
    with pytest.raises(ValueError, match="at most 4 different columns"):
        plans.of(clustered._replace(cluster_by=("key", "key")))
    with pytest.raises(ValueError, match="the format avro needs a schema registry"):
        plans.of(DEFAULT._replace(format="avro"))
    registered = TablePlans(KafkaSettings(), "/out", Registry("http://r:1"), compact_every=20)
    found = registered.of(DEFAULT._replace(format="protobuf")).registry
    assert found is not None
    assert (found.type, found.registry.url) == ("PROTOBUF", "http://r:1")
    assert registered.of(DEFAULT).registry is None


def test_a_topic_chooses_the_format_of_its_table_and_else_the_job_does() -> None:
    for job, topic, format_of_table in (
        ("delta", "", "delta"),
        ("delta", "iceberg", "iceberg"),
        ("iceberg", "", "iceberg"),
        ("iceberg", "delta", "delta"),
    ):
        plans = TablePlans(KafkaSettings(), "/out", Registry(""), 20, job)
        assert plans.of(DEFAULT._replace(table_format=topic)).format == format_of_table
        assert plans.shared("").format == job
    without = TablePlans(KafkaSettings(), "/out", Registry(""), 20, has_iceberg=False)
    with pytest.raises(ValueError, match=r"started without Iceberg\. Start the job again"):
        without.of(DEFAULT._replace(table_format="iceberg"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "missing: --out"),
        (["--out", "o", "--interval", "0"], "--interval and --upkeep-seconds are above 0"),
        (["--out", "s3a://b/o"], "an --out that is not a local directory needs a --state-file"),
        (["--out", "o", "--remote", "sc://h:1"], "--remote is not possible"),
        (["--out", "o", "--every", "soon"], "--every: 'soon' is not a time"),
        (["--out", "o", "--metrics-port", "70000"], "--metrics-port is a number"),
        (["--out", "o", "--schema-registry", "r:1"], "--schema-registry is a URL"),
    ],
)
def test_a_wrong_command_line_ends_with_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        run.parsed(arguments)
    assert end.value.code == 2
    assert f"tidelog tables run: error: {complaint}" in capsys.readouterr().err.replace("\n", " ")
