"""The checkpoint of a streaming query: its query id, and the offsets that each batch covers.

Spark writes the end offsets of a batch before it runs the batch. If the batch is run again, it
therefore covers the same records. A checkpoint may be on any file system, because a path that is
not local is read through Spark.
"""

import json
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidelog_pipelines.settings import has_scheme

Ends = dict[str, dict[int, int]]
"""For each topic and partition, the offset after the last record."""


class Span(NamedTuple):
    """The records of one partition that a batch covers: the offsets in [start, end)."""

    partition: int
    start: int
    end: int


class Checkpoint:
    def __init__(self, spark: SparkSession | None, path: str) -> None:
        """Without a session, the path is one of this machine."""
        self._spark = spark
        self.path = path.rstrip("/")
        self.directory = Path(self.path) if spark is None or is_local(spark, path) else None
        """The directory, if it is local."""

    def query_id(self) -> str:
        """The id of the query. If the checkpoint was lost and created again, the id is new."""
        (line,) = self._lines("metadata")
        return str(json.loads(line)["id"])

    def last_committed(self) -> int | None:
        """The number of the last complete batch. None if no batch is complete."""
        numbers = [int(name) for name in self._names("commits") if name.isdigit()]
        return max(numbers, default=None)

    def is_complete(self) -> bool:
        """Whether the last batch that was planned is complete."""
        planned = [int(name) for name in self._names("offsets") if name.isdigit()]
        return max(planned, default=None) == self.last_committed()

    def ends(self, batch: int) -> Ends:
        """The end offset of a batch in each partition."""
        lines = self._lines(f"offsets/{batch}")
        return parse_ends(lines[2]) if len(lines) > 2 else {}

    def planned(self, batch: int) -> tuple[str, list[str]]:
        """The settings of a planned batch, and the end offsets of each source, as Spark's JSON."""
        _version, settings, *offsets = self._lines(f"offsets/{batch}")
        return settings, offsets

    def committed_ends(self) -> Ends:
        """The end offsets of the last complete batch."""
        last = self.last_committed()
        return {} if last is None else self.ends(last)

    def spans(self, batch: int) -> dict[str, list[Span]]:
        """The records that a batch covers, by topic. Topics without records are left out."""
        before = self.ends(batch - 1) if batch else self.first_starts()
        return spans_between(before, self.ends(batch))

    def first_starts(self) -> Ends:
        """The start offsets of the first batch."""
        lines = self._lines("sources/0/0")
        return parse_ends(lines[-1]) if lines else {}

    def _names(self, directory: str) -> list[str]:
        if self.directory is not None:
            return [file.name for file in (self.directory / directory).glob("*")]
        assert self._spark is not None
        try:
            files = self._spark.read.text(f"{self.path}/{directory}").inputFiles()
        except AnalysisException:
            return []
        return [file.rpartition("/")[2] for file in files]

    def _lines(self, name: str) -> list[str]:
        if self.directory is not None:
            file = self.directory / name
            return file.read_text(errors="replace").splitlines() if file.exists() else []
        assert self._spark is not None
        try:
            rows = self._spark.read.text(f"{self.path}/{name}", wholetext=True).collect()
        except AnalysisException:
            return []
        return [line for row in rows for line in row[0].splitlines()]


def is_local(spark: SparkSession, path: str) -> bool:
    """Whether this session's path is certainly a path of this machine."""
    master = spark.conf.get("spark.master", "") or ""
    return not has_scheme(path) and master.startswith(("local", "spark://"))


def parse_ends(text: str) -> Ends:
    """Offsets as Spark's connector writes them: `{"topic":{"0":12}}`."""
    try:
        found = json.loads(text)
        return {
            topic: {int(partition): int(end) for partition, end in ends.items()}
            for topic, ends in found.items()
        }
    except (ValueError, AttributeError, TypeError):
        return {}  # the checkpoint belongs to a query that does not read topics


def spans_between(before: Ends, after: Ends) -> dict[str, list[Span]]:
    """The spans between two sets of offsets. The span of a new partition begins at offset 0."""
    spans = {
        topic: [
            Span(partition, start, end)
            for partition, end in sorted(ends.items())
            if (start := before.get(topic, {}).get(partition, 0)) < end
        ]
        for topic, ends in sorted(after.items())
    }
    return {topic: found for topic, found in spans.items() if found}
