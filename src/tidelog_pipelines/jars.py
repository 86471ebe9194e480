"""The additional jars that Spark needs, resolved once by their coordinates and cached.

Spark's own Ivy resolves the coordinates, so the user's Ivy settings and local Maven repository
determine the repositories and mirrors. Ivy runs in a separate process. The directory of the jars is
named after a hash of the coordinates. Every later session starts without network access.

`python -m tidelog_pipelines.jars` prints the jars as a list for spark-submit's --jars. With the
argument `iceberg`, the list includes Iceberg's jar.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from tidelog_pipelines.failures import JobFailed

LINES = {
    "4.0": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-avro_2.13:4.0.2",
        "io.delta:delta-spark_4.0_2.13:4.4.0",
    ),
    "4.1": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
        "org.apache.spark:spark-avro_2.13:4.1.1",
        "io.delta:delta-spark_4.1_2.13:4.4.0",
    ),
}
"""The coordinates by Spark's release line. docs/adr/0009 explains the lines and versions."""

ICEBERG = {"4.0": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",)}
"""Iceberg's coordinates by Spark's release line. They are fetched only for --format iceberg."""

SHIPPED = (
    "com.fasterxml.jackson.core:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-pool:*",
    "io.airlift:*",
    "org.apache.hadoop:*",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.lz4:*",
    "org.roaringbitmap:*",
    "org.scala-lang.modules:*",
    "org.slf4j:*",
    "org.tukaani:*",
    "org.xerial.snappy:*",
)
"""Jars that Spark ships itself. If two versions of a jar were present, Spark might load either."""

IVY_SETTINGS = ("~/.ivy2.5.2/ivysettings.xml", "~/.ivy2/ivysettings.xml")
NAMED_BY_THE_USER = "TIDELOG_SPARK_JARS"
FETCH = "fetch"


def cache_directory() -> Path:
    """The cache of fetched files, shared by all checkouts and versions."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tidelog"


def coordinates(version: str | None = None) -> tuple[str, ...]:
    """The jars that a version of PySpark needs. The default is the installed version."""
    version = version or metadata.version("pyspark")
    line = _line(version)
    if line not in LINES:
        raise JobFailed(
            f"PySpark {version} is installed, and the pipeline works with {' and '.join(LINES)}: "
            f"pip install 'pyspark~={min(LINES)}.0'."
        )
    return LINES[line]


def iceberg_coordinates(version: str | None = None) -> tuple[str, ...]:
    """Iceberg's jar for a version of PySpark, by default for the installed version."""
    version = version or metadata.version("pyspark")
    if (found := ICEBERG.get(_line(version))) is None:
        raise JobFailed(
            f"PySpark {version} is installed, and --format iceberg works with "
            f"{' and '.join(ICEBERG)}: pip install 'pyspark~={min(ICEBERG)}.0'."
        )
    return found


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def jars(*, iceberg: bool = False) -> list[Path]:
    """The jars, including Iceberg's if it is chosen. Jars are fetched when they are first used."""
    if named := os.environ.get(NAMED_BY_THE_USER):
        return sorted(Path(named).glob("*.jar"))
    found = _fetched(coordinates(), "Spark's connector for Kafka and Delta")
    return found + _fetched(iceberg_coordinates(), "Iceberg") if iceberg else found


def _fetched(wanted: tuple[str, ...], what: str) -> list[Path]:
    """The jars of these coordinates. If they must be fetched, prints a line on stderr."""
    name = hashlib.sha256("\n".join([*wanted, *SHIPPED]).encode()).hexdigest()[:12]
    home = cache_directory() / f"spark-jars-{name}"
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_suffix(".lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if not home.is_dir():  # another process may have fetched them meanwhile
                _fetch(home, wanted, what)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path, wanted: tuple[str, ...], what: str) -> None:
    started = time.monotonic()
    print(
        f"tidelog: fetching {what}, once ...",
        end=" ",
        file=sys.stderr,
        flush=True,
    )
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        log = home.with_suffix(".log")
        with log.open("w") as output:
            done = subprocess.run(
                [sys.executable, "-P", "-m", __name__, FETCH, scratch, *wanted],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        if done.returncode != 0:
            print(file=sys.stderr)
            raise JobFailed(
                "the jars that Spark needs could not be fetched, and the first use needs a Maven "
                f"repository once; Ivy's output is in {log}. Set a mirror in {IVY_SETTINGS[0]}, or "
                f"a directory with the jars in {NAMED_BY_THE_USER}."
            )
        (Path(scratch) / "jars").rename(home)  # atomic
    print(f"done in {time.monotonic() - started:.0f} s", file=sys.stderr)


def _resolve(scratch: Path, wanted: list[str]) -> None:
    """Resolve the coordinates in a temporary session, and copy the jars to `scratch`/jars."""
    from pyspark.sql import SparkSession

    from tidelog_pipelines.java import java_home

    os.environ["JAVA_HOME"] = str(java_home(cache_directory()))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.Builder().master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.packages", ",".join(wanted))
    builder = builder.config("spark.jars.excludes", ",".join(SHIPPED))
    builder = builder.config("spark.jars.ivy", str(scratch / "ivy"))
    builder = builder.config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    for settings in IVY_SETTINGS:
        if (path := Path(settings).expanduser()).exists():
            builder = builder.config("spark.jars.ivySettings", str(path))
            break
    spark = builder.getOrCreate()
    resolved = spark.sparkContext.getConf().get("spark.jars") or ""
    spark.stop()
    target = scratch / "jars"
    target.mkdir()
    for jar in resolved.split(","):
        shutil.copy(jar.removeprefix("file://"), target)


if __name__ == "__main__":
    if sys.argv[1:2] == [FETCH]:
        _resolve(Path(sys.argv[2]), sys.argv[3:])
    else:  # for spark-submit --jars
        print(",".join(map(str, jars(iceberg="iceberg" in sys.argv[1:]))))
