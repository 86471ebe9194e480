"""Settings from flags, from a file, and from the environment."""

from pathlib import Path

import pytest

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import report
from tidelog_pipelines.jobs.health import HealthSettings
from tidelog_pipelines.jobs.ingest import IngestSettings
from tidelog_pipelines.jobs.report import ReportSettings
from tidelog_pipelines.jobs.transform import TransformSettings
from tidelog_pipelines.settings import SparkSettings, check_times, located, pairs, parse
from tidelog_pipelines.sources.places import absolute


def parsed(*arguments: str) -> IngestSettings:
    return parse(IngestSettings, "ingest", arguments, "about")


def test_flags_win_over_the_file_and_the_file_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", "environment:1")
    assert parsed("--topics", "t", "--out", "o").bootstrap_server == "environment:1"
    file = tmp_path / "job.toml"
    file.write_text(
        'topics = "t"\nout = "o"\nbootstrap-server = "file:1"\nonce = true\n'
        'compact-every = 3\nkafka = ["a=b", "c=d=e"]\n'
    )
    found = parsed("--config", str(file), "--out", "elsewhere", "--no-once")
    assert (found.bootstrap_server, found.out, found.once) == ("file:1", "elsewhere", False)
    assert (found.compact_every, found.kafka) == (3, ("a=b", "c=d=e"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--topics", "t"], "missing: --out"),
        (["--topics", "t", "--out", ""], "--out is empty"),
        (["--out", "o"], "give either --topics or --pattern"),
        (["--out", "o", "--topics", "t", "--pattern", "t"], "give either --topics or --pattern"),
        (["--out", "o", "--topics", "t", "--value-format", "avro"], "needs a --schema"),
        (["--out", "o", "--topics", "t", "--format", "csv"], "invalid choice: 'csv'"),
        (["--out", "o", "--pattern", "["], "--pattern is not a regular expression: unterminated"),
        (["--out", "o", "--topics", "t", "--starting-offsets", "then"], "or JSON such as"),
        (["--out", "o", "--topics", "t", "--starting-offsets", '{"t":5}'], "or JSON such as"),
        (["--out", "o", "--topics", "t", "--every", "soon"], "--every: 'soon' is not a time"),
        (["--out", "o", "--topics", "t", "--avro-registry-header"], "needs --avro-schema-id"),
        (
            [
                "--out",
                "o",
                "--topics",
                "t",
                "--value-format",
                "raw",
                "--schema-registry",
                "http://r",
            ],
            "--schema-registry is for --value-format avro, protobuf, json",
        ),
        (
            ["--out", "o", "--topics", "t", "--value-format", "protobuf"],
            "a --schema and a --message",
        ),
        (
            ["--out", "o", "--topics", "t", "--message", "m"],
            "--message is for --value-format proto",
        ),
        (
            ["--out", "o", "--topics", "t", "--value-format", "avro", "--schema-registry", "r:1"],
            "'r:1' is not a URL such as http://HOST:8081",
        ),
        (
            ["--out", "o", "--topics", "t", "--schema-registry-auth", "f"],
            "--schema-registry-auth needs --schema-registry",
        ),
        (["--out", "o", "--topics", "t", "--max-depth", "5000"], "a number from 1 to 1000"),
        (["--out", "o", "--topics", "t", "--max-fields", "0"], "are at least 1"),
        (["--out", "o", "--topics", "t", "--metrics-port", "70000"], "a number from 1 to 65535"),
        (["--out", "o", "--pattern", "t.*", "--dead-letter-topic", "td"], "that the job reads"),
        (
            ["--out", "o", "--topics", "t", "--format", "parquet", "--partition-by", "none"],
            "--partition-by needs --format delta or iceberg",
        ),
        (
            ["--out", "o", "--topics", "t", "--format", "parquet", "--mode", "upsert"],
            "--mode upsert needs --format delta or iceberg",
        ),
        (["--out", "o", "--topics", "t", "--mode", "merge"], "invalid choice: 'merge'"),
        (
            ["--out", "o", "--cluser-by", "id"],
            "unrecognized arguments: --cluser-by id (did you mean --cluster-by?)",
        ),
        (["--out", "o", "--xyzzy", "stray"], "unrecognized arguments: --xyzzy stray\n"),
        (
            ["--out", "o", "--topics", "t", "--envelope", "debezium"],
            "--envelope debezium needs --mode upsert or history",
        ),
        (
            [
                *("--out", "o", "--topics", "t", "--mode", "history", "--envelope", "debezium"),
                *("--value-format", "string"),
            ],
            "--envelope debezium is for --value-format json, and avro with --schema-registry",
        ),
    ],
)
def test_a_wrong_command_line_ends_with_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parsed(*arguments)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topics = ", "is not TOML"),
        ('topic = "t"', "there is no setting 'topic'; there are"),
        ("topics = 3", "topics takes str, not 3"),
        ('format = "csv"', "format is one of delta, iceberg, parquet, not 'csv'"),
        ('once = "yes"', "once takes bool, not 'yes'"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "job.toml"
    file.write_text(text)
    with pytest.raises(JobFailed, match=complaint):
        parsed("--config", str(file))


@pytest.mark.parametrize(
    ("kind", "arguments", "complaint"),
    [
        (
            TransformSettings,
            ["--to", "t", "--show", "--window", "1"],
            "--window: '1' is not a time",
        ),
        (TransformSettings, ["--to", "t", "--show", "--watermark", ""], "--watermark: '' is not"),
        (HealthSettings, ["--every", "10 s"], "--every: '10 s' is not a time"),
        (HealthSettings, ["--follow"], "--follow needs --out"),
    ],
)
def test_other_jobs_check_theirs_too(
    kind: type[SparkSettings],
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(kind, "job", arguments, "about")
    assert complaint in capsys.readouterr().err


def test_what_spark_takes_for_a_time_is_let_through() -> None:
    check_times(every="1 minute 30.5 seconds", window="INTERVAL 2 hours", watermark="0 seconds")


def test_whole_numbers_of_a_file_are_numbers_too(tmp_path: Path) -> None:
    file = tmp_path / "report.toml"
    file.write_text("hours = 12\n")
    assert parse(ReportSettings, "report", ["--config", str(file)], "about").hours == 12.0


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--config", "nowhere.toml"]) == 1
    assert capsys.readouterr().err == "tidelog: nowhere.toml: No such file or directory\n"


def test_pairs_may_hold_equals_signs_and_must_hold_one() -> None:
    assert pairs(["a=b=c", "d="], "--conf") == {"a": "b=c", "d": ""}
    with pytest.raises(JobFailed, match="--conf: 'a' is not key=value"):
        pairs(["a"], "--conf")


@pytest.mark.parametrize("path", ["dbfs:/x", "s3a://bucket/x", "file:/x", "hdfs://host:1/x/"])
def test_a_path_with_a_file_system_is_not_a_local_one(path: str) -> None:
    assert located(path) == path.rstrip("/")
    assert absolute(path) == path


def test_a_path_without_one_is_local() -> None:
    assert located("x:y") == str(Path.cwd() / "x:y")


def test_ingests_into_different_directories_have_different_query_names() -> None:
    names = {parsed("--topics", "t", "--out", out).query_name for out in ("a", "./a/", "b")}
    assert names == {f"ingest {Path.cwd()}/a", f"ingest {Path.cwd()}/b"}
