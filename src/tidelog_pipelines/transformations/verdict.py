"""The audit's verdict: the number of records of each kind, as a row of a table and as text."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

FAULTS = ("lost", "duplicated", "reordered", "corrupted", "damaged", "different")
"""The counts that must be zero. The other counts are for information."""

MEANINGS = {
    "lost": "acknowledged, but not in the log",
    "duplicated": "in the log more often than acknowledged",
    "reordered": "at another offset than the acknowledged one",
    "corrupted": "the offset holds other content, or a batch that cannot be read",
    "damaged": "batches on a disk that cannot be read",
    "different": "records that a replica lacks, or that differ from the other replicas",
    "expired": "acknowledged, and since deleted by retention",
    "compacted": "acknowledged, and since removed by compaction",
    "unacknowledged": "in the log, but in no ledger: their acknowledgement never arrived",
    "behind": "records that a replica has yet to fetch",
    "replicas": "offsets at which replicas differ or are behind",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    acknowledged: int
    readable: int
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0
    damaged: int = 0
    different: int = 0
    expired: int = 0
    unacknowledged: int = 0
    behind: int = 0
    compacted: int = 0

    @property
    def is_clean(self) -> bool:
        return not any(getattr(self, fault) for fault in FAULTS)

    def sentence(self) -> str:
        """The verdict in one line: acknowledged, lost, duplicated, then other counts above zero."""
        text = f"acknowledged {self.acknowledged:,}, lost {self.lost:,}"
        text += f", duplicated {self.duplicated:,}"
        also = [*FAULTS[2:], "expired", "compacted", "unacknowledged", "behind"]
        for name in also:
            if count := getattr(self, name):
                text += f", {name} {count:,}"
        return text


def counted(tables: Mapping[str, DataFrame]) -> dict[str, int]:
    """The number of rows of each table, by name, from one query."""
    together: DataFrame | None = None
    for name, table in tables.items():
        one = table.agg(f.count("*").alias("rows")).select(f.lit(name).alias("name"), "rows")
        together = one if together is None else together.unionByName(one)
    assert together is not None
    return {row["name"]: row["rows"] for row in together.collect()}
