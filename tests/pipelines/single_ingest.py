"""Settings of an `ingest` that ends by itself, the tables that it writes, and a lost commit."""

from pathlib import Path

from pyspark.sql import Row, SparkSession

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.table_formats.formats import FORMATS


def settings(cluster: Cluster, out: Path, **more: object) -> ingest.IngestSettings:
    chosen = {
        "bootstrap_server": cluster.bootstrap,
        "out": str(out),
        "once": True,
        "compact_every": 0,
        **more,
    }
    return ingest.IngestSettings(**chosen)  # type: ignore[arg-type]


def rows(
    spark: SparkSession, out: Path, name: str, *columns: str, kind: str = "delta"
) -> list[Row]:
    found = FORMATS[kind](spark, str(out)).rows(name)
    assert found is not None
    return found.select(*columns).orderBy(*columns).collect()


def lose_the_last_commit(out: Path) -> None:
    """Undo the last commit of the checkpoint, as if the driver was killed before this commit."""
    last = max((out / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
