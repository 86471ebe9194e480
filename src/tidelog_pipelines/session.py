"""The only place that creates or configures a Spark session.

If this process starts the JVM itself, the module finds Java and the jars, makes Python workers use
this Python, and silences Spark's log. Under spark-submit, it leaves the JVM and the jars to
spark-submit.
"""

import os
import sys
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidelog_pipelines import class_archive
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jars import cache_directory, jars
from tidelog_pipelines.java import java_home
from tidelog_pipelines.settings import SparkSettings, pairs

LOG4J = Path(__file__).with_name("log4j2.properties")
QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers that print a page for every failed query. `failures` prints one sentence instead."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
JVM = "-Xss8m -Duser.timezone=UTC"
"""Options of the JVM. Deep plans and schemas need a larger stack than the default.

The time zone is UTC because Spark's Kafka connector uses the JVM's time zone.
"""
FOR_A_SHORT_JOB = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a JVM that runs for seconds: it compiles quickly, and optimizes little."""
CLASS_PATH = "spark.driver.extraClassPath"
LOCAL = "local[*,4]"
"""Use all cores, and try each task up to four times, because a task may fail when a broker dies."""

AT_START = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Options that Spark reads only at its start. A Connect server must be started with them."""
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    # Compaction skips files of 64 MB and more. Otherwise each run would rewrite the whole table.
    "spark.databricks.delta.optimize.minFileSize": str(64 << 20),
    "spark.databricks.delta.optimize.maxFileSize": str(128 << 20),
    # Records may be large, so a batch for a Python worker is also limited in bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # On one machine, more partitions would cost more than they gain.
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    # The number of tasks in which VACUUM lists files. The default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}


def spark_session(
    settings: SparkSettings,
    job: str = "tidelog",
    *,
    iceberg: bool = False,
    is_short: bool = False,
) -> SparkSession:
    """A session according to the settings: embedded, on a cluster, or on a Connect server.

    `is_short` tells that the job has little data, so its JVM should start quickly.
    """
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = settings.log_level == "OFF"
    chosen = pairs(settings.conf, "--conf")
    if settings.remote:
        builder = SparkSession.Builder().remote(settings.remote)
        return _configured(builder, {**ALWAYS, **chosen}).getOrCreate()
    builder = SparkSession.Builder().appName(f"tidelog {job}")
    if _is_submitted():
        session = _configured(builder, {**AT_START, **ALWAYS, **chosen}).getOrCreate()
    else:
        launch = _launch(settings, chosen, iceberg=iceberg, is_short=is_short)
        session = _configured(builder, launch).getOrCreate()
    session.sparkContext.setLogLevel(settings.log_level)
    return session


def active_session() -> SparkSession | None:
    """The session that this process has started, if there is one.

    PySpark's own active session is the session that last created a DataFrame. This may be the copy
    that Spark makes for a streaming query. The builder returns the first session of the process.
    """
    try:
        SparkSession.active()
    except PySparkRuntimeError:
        return None
    return SparkSession.Builder().getOrCreate()


def adapt(session: SparkSession, settings: SparkSettings) -> None:
    """Set the options that the pipeline always needs, and those of `conf`, in a user's session.

    Raises if a setting only takes effect at the start of Spark. The log level stays as it is.
    """
    given = {"--master": settings.master, "--driver-memory": settings.driver_memory}
    if too_late := [flag for flag, value in given.items() if value]:
        raise JobFailed(
            f"a Spark session is already active, and {' and '.join(too_late)} can only be given "
            "for a new one: leave the option out, or stop that session first."
        )
    for key, value in {**ALWAYS, **pairs(settings.conf, "--conf")}.items():
        session.conf.set(key, value)


def configuration(*, iceberg: bool = False) -> dict[str, str]:
    """What a session needs at its start: the options and the jars, with Iceberg's if chosen."""
    return {
        **AT_START,
        **ALWAYS,
        "spark.jars": ",".join(map(str, jars(iceberg=iceberg))),
        JAVA_OPTIONS: JVM,
    }


def _is_submitted() -> bool:
    """Whether spark-submit has started this process and its JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _launch(
    settings: SparkSettings, chosen: dict[str, str], *, iceberg: bool, is_short: bool
) -> dict[str, str]:
    """The configuration of a JVM that this process starts itself."""
    master = settings.master or LOCAL
    java = java_home(cache_directory())
    os.environ["JAVA_HOME"] = str(java)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # For the JVM that only composes the command line of the other one.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", FOR_A_SHORT_JOB)
    options = [f"-Dlog4j2.configurationFile={LOG4J.as_uri()}", JVM]
    values = {
        **configuration(iceberg=iceberg),
        "spark.master": master,
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Spark creates this directory at its start, by default in the working directory.
        warehouse = str(cache_directory() / "spark-warehouse")
        values |= {**LOCALLY, "spark.sql.warehouse.dir": warehouse}
        values[DRIVER_MEMORY] = settings.driver_memory or f"{driver_megabytes()}m"
        # Only classes of the class path can be archived, and only if the class path is the one of
        # the archive. So jars that not every session has are added by Spark.
        ours = jars()
        others = [str(jar) for jar in jars(iceberg=iceberg) if jar not in ours]
        values["spark.jars"] = ",".join(others)
        paths = [*map(str, ours), *filter(None, [chosen.get(CLASS_PATH)])]
        chosen = {**chosen, CLASS_PATH: os.pathsep.join(paths)}
        options.append(class_archive.jvm_options(cache_directory(), java, ours))
        if is_short:
            options.append(FOR_A_SHORT_JOB)
    elif settings.driver_memory:
        values[DRIVER_MEMORY] = settings.driver_memory
    options.append(chosen.get(JAVA_OPTIONS, ""))
    return values | chosen | {JAVA_OPTIONS: " ".join(filter(None, options))}


def driver_megabytes() -> int:
    """A quarter of the memory that this process may use, but at least 1 GiB and at most 8 GiB."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in CONTAINER_LIMITS:
        if file.exists() and (limit := file.read_text().strip()).isdigit():
            memory = min(memory, int(limit))
    return max(1 << 10, min(8 << 10, memory >> 22))


def _configured(builder: SparkSession.Builder, values: dict[str, str]) -> SparkSession.Builder:
    for key, value in values.items():
        builder = builder.config(key, value)
    return builder
