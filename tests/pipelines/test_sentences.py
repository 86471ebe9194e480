"""User errors that only Spark detects are reported in one sentence without a Java stack trace."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidelog_pipelines.failures import JobFailed, run
from tidelog_pipelines.sources.ledgers import acknowledged


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT nothing FROM range(3)", "UNRESOLVED_COLUMN"),
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
        ("SELECT 1 / (id - 1) FROM range(3)", "DIVIDE_BY_ZERO"),
        ("SELECT int(concat('a', id)) FROM range(3)", "CAST_INVALID_INPUT"),
    ],
)
def test_wrong_sql(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], sql: str, name: str
) -> None:
    assert run(lambda: len(list(spark.sql(sql).toLocalIterator()))) == 1
    line, end = capfd.readouterr().err.split("\n")
    assert line.startswith(f"tidelog: Spark reports: [{name}")
    assert not end


def test_parquet_that_is_no_ledger(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "some.parquet")
    spark.sql("SELECT 't' topic, 0 partition, 7 offset, 'abc' checksum").write.parquet(path)
    with pytest.raises(JobFailed, match="is not a ledger: it has no column key, acked_at"):
        acknowledged(spark, [path])
