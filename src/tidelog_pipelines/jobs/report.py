"""`report`: an HTML page about a cluster's replication that needs only a browser."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines import failures
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings, parse, setting
from tidelog_pipelines.sinks.reports.report_page import page
from tidelog_pipelines.sinks.reports.report_rows import gathered
from tidelog_pipelines.sources.event_logs import AUTO, recorded_events
from tidelog_pipelines.transformations.health import follower_states
from tidelog_pipelines.transformations.health_tables import batch_tables

ABOUT = """\
Write a page about a cluster's replication: the in-sync replicas over time, failovers and their
duration, the lag of followers, the most frequent causes. The page is one file, for a browser, a
wall or a mail.
"""


@dataclass(frozen=True, kw_only=True)
class ReportSettings(KafkaSettings):
    events: str = setting(
        AUTO,
        metavar="auto|PATH",
        meaning="the events: the cluster's own topic, or JSON lines as tidelog observe writes them",
    )
    out: str = setting("report.html", metavar="FILE", meaning="where to write the page")
    title: str = setting("Replication health", metavar="TEXT", meaning="the title of the page")
    hours: float = setting(24.0, metavar="N", meaning="how many of the last hours the page shows")


def write(spark: SparkSession, settings: ReportSettings) -> int:
    events = recorded_events(spark, settings, settings.events)
    last = events.agg(f.max("ts").alias("last")).collect()[0]["last"]
    if last is None:
        raise JobFailed(
            "no replication event was found; a cluster that records none can be watched with "
            "`tidelog observe`."
        )
    shown = events.where(f.col("ts") >= last - round(settings.hours * 3_600_000)).cache()
    tables = batch_tables(shown, DataFrame.cache)
    report = gathered(settings.title, shown, tables, follower_states(shown))
    Path(settings.out).write_text(page(report), encoding="utf-8")
    print(settings.out)
    return 0


def main(arguments: list[str]) -> int:
    def job() -> int:
        settings = parse(ReportSettings, "report", arguments, ABOUT)
        return write(spark_session(settings, "report"), settings)

    return failures.run(job)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
