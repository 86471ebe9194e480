"""Spark's part of `tidelog pipeline demo`: runs ingest and health until the end, then audits.

The end of standard input means that no more records will be written to the topic. The last line of
standard output is the result in JSON. Progress goes to standard error.
"""

import json
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import failures
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import audit, health, ingest, report
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings, parse, setting
from tidelog_pipelines.sources.event_logs import require_events
from tidelog_pipelines.streams import say
from tidelog_pipelines.transformations.verdict import Verdict

PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class DemoSettings(KafkaSettings):
    topic: str = setting(metavar="NAME", meaning="the topic that is written to")
    ledger: str = setting(metavar="FILE", meaning="the ledger of acknowledged records")
    out: str = setting(metavar="DIR", meaning="the directory of the tables and the page")


class Demo:
    def __init__(self, spark: SparkSession, settings: DemoSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._out = settings.out.rstrip("/")
        self._health: dict[str, StreamingQuery] = {}

    def watch(self, ended: threading.Event) -> None:
        """Ingest repeatedly, and once more after the end of the input."""
        while True:
            is_last = ended.is_set()
            self._ingest(is_last)
            self._keep_health()
            if is_last:
                break
            ended.wait(PAUSE_SECONDS)
        for query in self._health.values():
            query.stop()

    def answer(self) -> dict[str, object]:
        """The number of rows, the page, and the audit's verdict."""
        say("health: writing the page")
        page = f"{self._out}/report.html"
        report.write(
            self._spark,
            report.ReportSettings(
                bootstrap_server=self._settings.bootstrap_server,
                kafka=self._settings.kafka,
                out=page,
                title="Replication health of the demo",
            ),
        )
        say("audit: comparing the acknowledged records with the readable ones")
        verdict = self._audit()
        rows = self._spark.read.format("delta").load(self._table()).count()
        return {
            **asdict(verdict),
            "is_clean": verdict.is_clean,
            "sentence": verdict.sentence(),
            "rows": rows,
            "table": self._table(),
            "page": page,
        }

    def _table(self) -> str:
        return f"{self._out}/tables/{self._settings.topic}"

    def _ingest(self, is_last: bool) -> None:
        ingest.run(
            self._spark,
            ingest.IngestSettings(
                bootstrap_server=self._settings.bootstrap_server,
                kafka=self._settings.kafka,
                topics=self._settings.topic,
                out=self._out,
                once=True,
                compact_every=1 if is_last else 0,
            ),
        )

    def _keep_health(self) -> None:
        """Start the queries when there are events.

        If a broker failure ends a query, start them again.
        """
        if self._health and all(query.isActive for query in self._health.values()):
            return
        for query in self._health.values():
            query.stop()
        settings = health.HealthSettings(
            bootstrap_server=self._settings.bootstrap_server,
            kafka=self._settings.kafka,
            out=f"{self._out}/health",
            follow=True,
        )
        try:
            require_events(settings)
        except JobFailed:
            self._health = {}  # no event has been recorded yet
        else:
            self._health = health.started(self._spark, settings)

    def _audit(self) -> Verdict:
        settings = audit.AuditSettings(
            bootstrap_server=self._settings.bootstrap_server,
            kafka=self._settings.kafka,
            ledger=(self._settings.ledger,),
        )
        with tempfile.TemporaryDirectory(prefix="tidelog-audit-") as scratch:
            return audit.audited(self._spark, settings, scratch, lambda line: None).verdict


def _wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def run(settings: DemoSettings) -> int:
    ended = threading.Event()
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    demo = Demo(spark_session(settings, "demo", is_short=True), settings)
    say("Spark is up")
    demo.watch(ended)
    print(json.dumps(demo.answer()), flush=True)
    return 0


def main(arguments: list[str]) -> int:
    return failures.run(lambda: run(parse(DemoSettings, "demo", arguments, __doc__ or "")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
