"""Commits the offsets of many groups for a day, and prints the size of the coordinator's log.

    python bench/group_commits.py --commits 10000000 --groups 100

The commits go to one partition of `__consumer_offsets`, with the configuration of that topic. The
log is compacted whenever Kafka's rules say so. At the end, a coordinator loads the log. The time of
the load covers reading, parsing, decoding and replaying all records. Only the log engine and the
group coordinator run, without a broker.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent))

from compaction import flush, run_pass
from group_loading import LARGEST_BATCH, NoDice

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.groups.machine import GroupMachine
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tidelog.coordination.runtime.decision import RecordOrigin
from tidelog.log.cleaner.cleaning_pass import CleanerLimits
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin, ReadResult
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import Record, build_batch, iterate_records
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk

OFFSETS = TopicPartition("__consumer_offsets", 0)
DAY_MS = 24 * 3_600_000
LOOKS = 1_000
"""After how many batches the cleaner looks at the log."""


class Coordinator:
    def __init__(self, root: Path, segment_bytes: int, now: int) -> None:
        config = LogConfig(segment_bytes=segment_bytes, cleanup_policy=frozenset({"compact"}))
        self.directory = LogDirectory(RealDisk(root), SystemDice())
        self.log: PartitionLog = self.directory.open(OFFSETS, UUID(int=1), config, now)
        self.cleaned_to = self.passes = self.largest = 0
        self.cleaning_seconds = 0.0

    def append(self, records: list[Record], now: int) -> None:
        batch = memoryview(bytearray(build_batch(records)))
        appended = self.log.append_as_leader(batch, 0, now, AppendOrigin.COORDINATOR)
        assert isinstance(appended, Appended), appended
        if self.log.needs_flush(now):
            flush(self.log, now)

    def look(self, now: int) -> None:
        """Compact the log if it is dirty enough."""
        log = self.log
        self.largest = max(self.largest, log.size)
        found = log.find_cleanable(self.cleaned_to, log.log_end_offset, now)
        if not found.is_due(log.config):
            return
        began = time.perf_counter()
        cleaning = log.begin_cleaning(found, CleanerLimits(), now)
        run_pass(cleaning, now)
        log.purge(now + DAY_MS)
        self.cleaned_to = cleaning.cleaned_to
        self.passes += 1
        self.cleaning_seconds += time.perf_counter() - began

    def load(self, groups: list[str]) -> tuple[float, int]:
        """The seconds in which a coordinator loads the log, and the number of offsets in it."""
        machine = GroupMachine(GroupShardState(GroupSettings(), NoDice(), lambda: LARGEST_BATCH))
        log, began = self.log, time.perf_counter()
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = log.read(offset, 1 << 20, log.log_end_offset, at_least_one=True)
            assert isinstance(found, ReadResult), found
            if found.slice is None:
                break
            file, position, length = found.slice
            chunk = memoryview(file.read(position, length))
            for at, header in iterate(chunk):
                for record in iterate_records(chunk[at : at + header.size]):
                    decoded = machine.decode(record.key or b"", record.value)
                    if decoded is not None:
                        machine.replay(decoded, RecordOrigin(record.offset))
                offset = header.next_offset
        seconds = time.perf_counter() - began
        return seconds, sum(1 for group in groups for _ in machine.shard.offsets.of_group(group))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--commits", type=int, default=200_000)
    options.add_argument("--groups", type=int, default=100)
    options.add_argument("--partitions", type=int, default=10, help="partitions of one commit")
    options.add_argument("--segment", type=int, default=100 << 20, help="segment.bytes")
    options.add_argument("--dir", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelog-commits-", dir=given.dir) as root:
        run(given, Path(root))


def run(given: argparse.Namespace, root: Path) -> None:
    start = int(time.time() * 1_000) - DAY_MS
    coordinator = Coordinator(root, given.segment, start)
    groups = [f"group-{number}" for number in range(given.groups)]
    keys = {
        group: [
            encode_key(OffsetCommitKey(group, "orders", index)) for index in range(given.partitions)
        ]
        for group in groups
    }
    batches = given.commits // given.partitions
    began = time.perf_counter()
    for number in range(batches):
        now = start + number * DAY_MS // batches
        value = encode_value(OffsetCommitValue(offset=number, metadata="", commit_timestamp=now))
        group = groups[number % len(groups)]
        coordinator.append([Record(key, value, now) for key in keys[group]], now)
        if number % LOOKS == 0:
            coordinator.look(now)
    written = coordinator.log.log_end_offset
    took = time.perf_counter() - began
    coordinator.look(start + DAY_MS)
    log = coordinator.log
    seconds, found = coordinator.load(groups)
    print(f"{written:,} commits of {given.groups} groups in {took:.0f} s", end="")
    print(f", of which {coordinator.passes} passes took {coordinator.cleaning_seconds:.1f} s")
    print(f"log: {log.size / 1e6:.1f} MB at the end, {coordinator.largest / 1e6:.1f} MB at most")
    print(f"a coordinator loads it in {seconds:.2f} s")
    assert found == given.groups * given.partitions, f"{found} offsets were loaded"


if __name__ == "__main__":
    main()
