"""What a streaming query's checkpoint says: whose it is, and which offsets each batch covers.

Spark writes a batch's end offsets before it runs the batch, so that a batch that is run again
covers the same records. Read through Spark, so that a checkpoint may lie on any file system.
"""

import json
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

Ends = dict[str, dict[int, int]]
"""Topic -> partition -> the offset after the last record."""


class Span(NamedTuple):
    """The records of one partition that a batch covers: from start up to, and without, end."""

    partition: int
    start: int
    end: int


class Checkpoint:
    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.path = path.rstrip("/")

    def query_id(self) -> str:
        """The query's id: another one when the checkpoint was lost and begun anew."""
        (line,) = self._lines("metadata")
        return str(json.loads(line)["id"])

    def last_committed(self) -> int | None:
        """The last batch that is known to be complete."""
        try:
            files = self._spark.read.text(f"{self.path}/commits").inputFiles()
        except AnalysisException:
            return None
        numbers = [int(name) for file in files if (name := file.rpartition("/")[2]).isdigit()]
        return max(numbers, default=None)

    def ends(self, batch: int) -> Ends:
        """Where a batch ends in each partition."""
        lines = self._lines(f"offsets/{batch}")
        return parse_ends(lines[2]) if len(lines) > 2 else {}

    def spans(self, batch: int) -> dict[str, list[Span]]:
        """The records that a batch covers, by topic; topics without any are left out."""
        before = self.ends(batch - 1) if batch else self._first_starts()
        return spans_between(before, self.ends(batch))

    def _first_starts(self) -> Ends:
        lines = self._lines("sources/0/0")
        return parse_ends(lines[-1]) if lines else {}

    def _lines(self, name: str) -> list[str]:
        try:
            rows = self._spark.read.text(f"{self.path}/{name}", wholetext=True).collect()
        except AnalysisException:
            return []
        return [line for row in rows for line in row[0].splitlines()]


def parse_ends(text: str) -> Ends:
    """Offsets as Spark's connector writes them: `{"topic":{"0":12}}`."""
    try:
        found = json.loads(text)
        return {
            topic: {int(partition): int(end) for partition, end in ends.items()}
            for topic, ends in found.items()
        }
    except (ValueError, AttributeError, TypeError):
        return {}  # not offsets of topics: the checkpoint of a query over something else


def spans_between(before: Ends, after: Ends) -> dict[str, list[Span]]:
    """What lies between two sets of offsets; a partition that is new begins at its first record."""
    spans = {
        topic: [
            Span(partition, start, end)
            for partition, end in sorted(ends.items())
            if (start := before.get(topic, {}).get(partition, 0)) < end
        ]
        for topic, ends in sorted(after.items())
    }
    return {topic: found for topic, found in spans.items() if found}
