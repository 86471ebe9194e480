"""Wrong rules of the log cleaner."""

from collections.abc import Iterable

from tidelog.log.cleaner.transactions import CleanedTransactions
from tidelog.model.disk import File
from tidelog.model.ids import Millis
from tidelog.protocol.records.batch import BatchHeader
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.rules import Replacement


def _early_tombstones() -> Iterable[Replacement]:
    def is_expired(horizon: Millis | None, now: Millis) -> bool:
        return True

    yield Replacement("tidelog.log.cleaner.filtering:is_expired", is_expired)


def _unsynced_swap() -> Iterable[Replacement]:
    def sync_files(files: Iterable[File]) -> None:
        pass

    yield Replacement("tidelog.log.cleaner.writing:sync_files", sync_files)


def _early_markers() -> Iterable[Replacement]:
    def is_marker_discardable(
        self: CleanedTransactions, header: BatchHeader, batch: memoryview
    ) -> bool:
        return True

    yield Replacement(
        "tidelog.log.cleaner.transactions:CleanedTransactions.is_marker_discardable",
        is_marker_discardable,
    )


COMPACTION = (
    Mutant(
        "early-tombstones",
        ("F78",),
        "The cleaner removes a tombstone at once, without waiting for its delete horizon.",
        _early_tombstones,
        "a_slow_reader_learns_of_a_deletion",
    ),
    Mutant(
        "unsynced-swap",
        ("F79",),
        "A compacted segment replaces others before it is synced.",
        _unsynced_swap,
        "a_power_cut_after_a_compaction_loses_no_last_value",
    ),
    Mutant(
        "early-markers",
        ("F80",),
        "The cleaner removes a transaction marker while records of its transaction stay.",
        _early_markers,
        "a_new_replica_of_a_compacted_topic_shows_committed_records",
    ),
)
