"""Compacts one log, and prints the time and the memory that it takes.

    python bench/compaction.py --records 50000000 --keys 1000000

Only the log engine runs, in one thread, without a broker. The memory is the peak of this process
minus its memory before the pass. Run it on a quiet machine, with space for the log twice.
"""

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path
from uuid import UUID

from tidelog.log.cleaner.cleaning_pass import CleanerLimits
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import Record, build_batch
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk

STATES = TopicPartition("states", 0)
PER_BATCH = 150


def fill(log: PartitionLog, records: int, keys: int, size: int, codec: str, now: int) -> None:
    value = bytes(range(256)) * (size // 256 + 1)
    for first in range(0, records, PER_BATCH):
        count = min(PER_BATCH, records - first)
        # A multiplication spreads the keys, so that each batch holds keys from all over the set.
        batch = [
            Record(b"%012d" % (n * 2_654_435_761 % keys), value[:size], now)
            for n in range(first, first + count)
        ]
        packed = memoryview(bytearray(build_batch(batch, compression=codec)))
        appended = log.append_as_leader(packed, 0, now, AppendOrigin.CHECKED_CLIENT)
        assert isinstance(appended, Appended), appended
        if log.needs_flush(now):
            flush(log, now)
    flush(log, now)


def flush(log: PartitionLog, now: int) -> None:
    files, up_to = log.begin_flush(now)
    for file in files:
        file.sync()
    log.flushed(up_to)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--records", type=int, default=200_000)
    options.add_argument("--keys", type=int, default=20_000)
    options.add_argument("--size", type=int, default=100, help="bytes of a value")
    options.add_argument("--codec", default="none")
    options.add_argument("--segment", type=int, default=1 << 30, help="segment.bytes")
    options.add_argument("--dir", type=Path, help="where to make the log; a temporary directory")
    given = options.parse_args()
    root = Path(tempfile.mkdtemp(prefix="tidelog-compaction-", dir=given.dir))
    try:
        run(given, root)
    finally:
        shutil.rmtree(root)


def run(given: argparse.Namespace, root: Path) -> None:
    now = int(time.time() * 1_000)
    config = LogConfig(segment_bytes=given.segment, cleanup_policy=frozenset({"compact"}))
    directory = LogDirectory(RealDisk(root), SystemDice())
    log = directory.open(STATES, UUID(int=1), config, now)
    began = time.perf_counter()
    fill(log, given.records, given.keys, given.size, given.codec, now)
    print(f"written   {given.records:,} records, {log.size / 1e6:,.0f} MB", end="")
    print(f" in {time.perf_counter() - began:.1f} s")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    cleanable = log.find_cleanable(0, log.log_end_offset, now)
    cleaning = log.begin_cleaning(cleanable, CleanerLimits(), now)
    while (job := cleaning.next_job()) is not None:
        steps = job.run()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                cleaning.take(done.value, now)
                break
    took = time.perf_counter() - began
    stats, peak = cleaning.stats, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"compacted {stats.records_read:,} records to {stats.records_kept:,}", end="")
    print(f" in {took:.1f} s: {stats.records_read / took:,.0f} records/s")
    print(f"size      {stats.bytes_read / 1e6:,.1f} MB to {stats.bytes_written / 1e6:,.1f} MB")
    print(f"memory    {(peak - before) / 1024:.0f} MB above the memory before the pass")


if __name__ == "__main__":
    main()
