"""Settings from flags, from a file, and from the environment."""

from pathlib import Path

import pytest

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.ingest import IngestSettings
from tidelog_pipelines.settings import pairs, parse


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
        (["--out", "o"], "give either --topics or --pattern"),
        (["--out", "o", "--topics", "t", "--pattern", "t"], "give either --topics or --pattern"),
        (["--out", "o", "--topics", "t", "--value-format", "avro"], "needs a --schema"),
        (["--out", "o", "--topics", "t", "--format", "csv"], "invalid choice: 'csv'"),
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
        ('format = "csv"', "format is one of delta, parquet, not 'csv'"),
        ('once = "yes"', "once takes bool, not 'yes'"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "job.toml"
    file.write_text(text)
    with pytest.raises(JobFailed, match=complaint):
        parsed("--config", str(file))


def test_pairs_may_hold_equals_signs_and_must_hold_one() -> None:
    assert pairs(["a=b=c", "d="], "--conf") == {"a": "b=c", "d": ""}
    with pytest.raises(JobFailed, match="--conf: 'a' is not key=value"):
        pairs(["a"], "--conf")
