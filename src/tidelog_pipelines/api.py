"""The pipeline as a library, for notebooks, for Spark Connect and for a user's own jobs.

The options have the names, defaults and checks of the commands' flags. For example, the flag
`--like-this` is the option `like_this`. If a job fails, its function raises `JobFailed` with one
sentence. No function prints anything. No session starts at import. docs/pipeline-api.md is the
guide.
"""

import dataclasses
import tempfile
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import session as sessions
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import audit as audit_job
from tidelog_pipelines.jobs import decode as decode_job
from tidelog_pipelines.jobs import health as health_job
from tidelog_pipelines.jobs import ingest as ingest_job
from tidelog_pipelines.jobs.audit import Audited, AuditSettings
from tidelog_pipelines.jobs.decode import Decoded
from tidelog_pipelines.jobs.health import HealthSettings, HealthTables
from tidelog_pipelines.jobs.ingest import IngestSettings
from tidelog_pipelines.jobs.replay import DECODER
from tidelog_pipelines.jobs.summary import Ingested, Start, counted
from tidelog_pipelines.options import sentences, settings_of, takes
from tidelog_pipelines.settings import SparkSettings, located
from tidelog_pipelines.sinks.claims import claimed
from tidelog_pipelines.sinks.table_formats.formats import FORMATS
from tidelog_pipelines.sources.checkpoint import Checkpoint
from tidelog_pipelines.sources.segments import SegmentsSource
from tidelog_pipelines.streams import Caller
from tidelog_pipelines.transformations.verdict import Verdict

__all__ = [
    "session",
    "configuration",
    "register",
    "ingest",
    "start_ingest",
    "RunningIngest",
    "Ingested",
    "decode",
    "Decoded",
    "audit",
    "Audited",
    "Verdict",
    "health",
    "HealthTables",
    "JobFailed",
]

Report = Callable[[str], None]
"""A function that gets lines about the progress, such as `print`."""


def _names(kind: type[SparkSettings], *without: str) -> tuple[str, ...]:
    """The names of the options, except those of the session and those in `without`."""
    left_out = {one.name for one in dataclasses.fields(SparkSettings)} | set(without)
    return tuple(one.name for one in dataclasses.fields(kind) if one.name not in left_out)


OF_SESSION = tuple(one.name for one in dataclasses.fields(SparkSettings))
OF_START_INGEST = _names(IngestSettings, "once")
OF_INGEST = tuple(name for name in OF_START_INGEST if name != "every")
OF_AUDIT = _names(AuditSettings)
OF_HEALTH = _names(HealthSettings, "follow", "once", "every", "patience_seconds")


# -- Creating and configuring sessions -------------------------------------------------------------


@takes(SparkSettings, OF_SESSION)
def session(*, iceberg: bool = False, **options: Any) -> SparkSession:
    """A session with everything that the pipeline needs. The first call on a machine fetches jars.

    `iceberg` adds the jar for `format="iceberg"`, which takes effect only at the start of Spark.

    If a session is active, the function sets the options that the pipeline always needs, and those
    of `conf`, in the active session and returns it. The session's log level changes only if
    `log_level` is given. If a session is active, `master` and `driver_memory` are refused.
    """
    settings = settings_of(SparkSettings, options, OF_SESSION)
    with sentences():
        found = None if settings.remote else sessions.active_session()
        if found is None:
            found = sessions.spark_session(settings, "session", iceberg=iceberg)
        else:
            sessions.adapt(found, settings)
            if options.get("log_level") is not None:
                found.sparkContext.setLogLevel(settings.log_level)
        register(found)
    return found


def configuration(*, iceberg: bool = False) -> dict[str, str]:
    """The configuration, including the jars, that a session of your own needs when it starts."""
    with sentences():
        return sessions.configuration(iceberg=iceberg)


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("segments")`, a data source that reads the files of brokers."""
    with sentences():
        spark.dataSource.register(SegmentsSource)


UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
TIME_ZONE = "spark.sql.session.timeZone"


def _require_utc(spark: SparkSession) -> None:
    with sentences():
        zone = spark.conf.get(TIME_ZONE)
    if zone not in UTC:
        raise JobFailed(
            f"the session's time zone is {zone}, and the pipeline's dates are in UTC: "
            f"spark.conf.set('{TIME_ZONE}', 'UTC')."
        )


def _is_connected(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _quiet(line: str) -> None:
    """Drop a line about the progress."""


# -- From topic to table ---------------------------------------------------------------------------


@takes(IngestSettings, OF_INGEST)
def ingest(spark: SparkSession, *, report: Report = _quiet, **options: Any) -> Ingested:
    """Write all present records of topics to tables, each once, like `pipeline ingest --once`.

    Ctrl-C stops the job properly and raises KeyboardInterrupt. The next call continues where the
    job stopped.
    """
    run = _Run(spark, _ingest_settings(spark, options, once=True))
    with sentences():
        if not run(Caller(report)):
            raise KeyboardInterrupt
        return run.counted()


@takes(IngestSettings, OF_START_INGEST)
def start_ingest(
    spark: SparkSession, *, report: Report = _quiet, **options: Any
) -> "RunningIngest":
    """Start to write the records of topics to tables, as they arrive, in the background."""
    run = _Run(spark, _ingest_settings(spark, options, once=False))
    return RunningIngest(run, run.counted, report)


def _ingest_settings(spark: SparkSession, options: dict[str, Any], once: bool) -> IngestSettings:
    _require_utc(spark)
    # If `remote` is set, the settings refuse options that a Spark Connect server cannot have.
    remote = "sc://" if _is_connected(spark) else ""
    names = OF_INGEST if once else OF_START_INGEST
    return settings_of(IngestSettings, options, names, once=once, remote=remote)


class _Run:
    """One run of ingest, and the state before it."""

    def __init__(self, spark: SparkSession, settings: IngestSettings) -> None:
        self._spark = spark
        self._settings = settings
        with sentences():
            ingest_job.require(settings)
            self._checkpoint = Checkpoint(spark, settings.checkpoint_path)
        self._start: Start | None = None

    def __call__(self, caller: Caller) -> bool:
        with claimed(located(self._settings.out)):
            # Read the state before the run only once --out is claimed. Until then, another job
            # might still write records, and this run would count them.
            self._start = Start.of(self._checkpoint)
            return ingest_job.run_claimed(self._spark, self._settings, caller)

    def counted(self) -> Ingested:
        """Count what the run has written. Call this after the run has ended."""
        assert self._start is not None
        tables = FORMATS[self._settings.format](self._spark, located(self._settings.out))
        return counted(self._start, self._checkpoint, tables)


class RunningIngest:
    """An ingest in the background. In a `with` statement, it stops at the end of the block.

    If the job has failed, the end of the block raises JobFailed, unless the block itself has
    raised.
    """

    def __init__(
        self, run: Callable[[Caller], bool], count: Callable[[], Ingested], report: Report
    ) -> None:
        self._run = run
        self._count = count
        self._queries: list[StreamingQuery] = []
        self._stop = threading.Event()
        self._has_begun = threading.Event()
        self._failure: BaseException | None = None
        self._is_failure_raised = False
        caller = Caller(report, self._begin, self._stop)
        self._thread = threading.Thread(target=self._work, args=(caller,), daemon=True)
        try:
            self._thread.start()
            self._has_begun.wait()
        except BaseException:
            # Stop the job here, because the caller gets no object with which to stop it.
            self._end()
            raise
        if self._failure is not None:
            self.wait()

    @property
    def query(self) -> StreamingQuery:
        """Spark's current query. After a failure of the cluster, the job starts a new query."""
        return self._queries[-1]

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a failure or `stop` has ended the job; returns whether the job has ended.

        Raises JobFailed if the job has failed.
        """
        self._thread.join(seconds)
        if self.is_active:
            return False
        if self._failure is not None:
            self._is_failure_raised = True
            raise self._failure
        return True

    def stop(self) -> Ingested:
        """Stop the job; returns what it has written.

        The next run repeats an incomplete micro-batch.
        """
        self._stop.set()
        self.wait()
        with sentences():
            return self._count()

    def __enter__(self) -> "RunningIngest":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        if error is None and not self._is_failure_raised:
            self.wait()

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _begin(self, query: StreamingQuery) -> None:
        self._queries.append(query)
        self._has_begun.set()

    def _work(self, caller: Caller) -> None:
        try:
            with sentences():
                self._run(caller)
        except BaseException as failure:
            self._failure = failure
        finally:
            self._has_begun.set()


# -- Without tables --------------------------------------------------------------------------------


@takes(IngestSettings, DECODER)
def decode(records: DataFrame, **options: Any) -> Decoded:
    """Decode the records of a DataFrame, or of a stream, as `ingest` does.

    The DataFrame has Kafka's columns: topic, partition, offset, timestamp, key, value, and
    optionally headers. Filter the DataFrame by topic first, because each topic has its own columns.
    """
    _require_utc(records.sparkSession)
    settings = settings_of(IngestSettings, options, DECODER, out=".", pattern=".*")
    with sentences():
        return decode_job.decode(records, settings)


@takes(AuditSettings, OF_AUDIT)
def audit(spark: SparkSession, *, report: Report = _quiet, **options: Any) -> Audited:
    """Compare the acknowledged records of ledgers with the content of their topics.

    If `out` is not given, the tables of findings are temporary: they exist until this process ends.
    """
    _require_utc(spark)
    settings = settings_of(AuditSettings, options, OF_AUDIT)
    if _is_connected(spark) and not settings.out:
        raise JobFailed("through Spark Connect, audit needs out, a directory of the server's.")
    with sentences():
        return audit_job.audited(spark, settings, settings.out or _scratch(), report)


_SCRATCH: list[tempfile.TemporaryDirectory[str]] = []
"""Temporary directories, which Python removes when it exits."""


def _scratch() -> str:
    _SCRATCH.append(tempfile.TemporaryDirectory(prefix="tidelog-audit-"))
    return _SCRATCH[-1].name


@takes(HealthSettings, OF_HEALTH)
def health(spark: SparkSession, *, report: Report = _quiet, **options: Any) -> HealthTables:
    """Tables about the replication of a cluster, from all its replication events so far."""
    _require_utc(spark)
    settings = settings_of(HealthSettings, options, OF_HEALTH)
    with sentences():
        tables = health_job.found(spark, settings)
        if settings.out:
            health_job.keep(tables, settings.out, report)
    return tables
