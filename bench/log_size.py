"""Measure append, fetch and open on a log of 1 GB and (with --large) of 10 GB.

Run it as `python bench/log_size.py [--large] [--dir DIRECTORY]`; the data is removed afterwards.
The times are medians of wall-clock time in microseconds. They cover only the log engine.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, ReadResult
from tidelog.protocol.records.records import Record, build_batch
from tidelog.runtime.files.disk import RealDisk

GB = 1_000_000_000
BATCH = 16 * 1024
SEGMENT = 100_000_000
ROUNDS = 3_000
DIRECTORY = "bench-0"
NOW = 1_700_000_000_000
BASE_OFFSET = slice(0, 8)


def new_batch() -> memoryview:
    made = build_batch([Record(None, bytes(BATCH - 75), NOW)])
    return memoryview(bytearray(made))


def open_log(root: Path, *, clean: bool, recovery_point: int = 0) -> PartitionLog:
    return PartitionLog.open(
        RealDisk(root),
        DIRECTORY,
        LogConfig(segment_bytes=SEGMENT),
        NOW,
        last_stop=LastStop.CLEAN if clean else LastStop.UNKNOWN,
        recovery_point=recovery_point,
    )


def append(log: PartitionLog, batch: memoryview) -> None:
    batch[BASE_OFFSET] = bytes(8)
    result = log.append_as_leader(batch, 1, NOW)
    assert isinstance(result, Appended)


def fill(root: Path, size: int) -> int:
    """Write and close a log of this size, and return its log end offset."""
    log, batch = open_log(root, clean=False), new_batch()
    while log.size < size:
        append(log, batch)
    log.close()
    return log.log_end_offset


def fetch(log: PartitionLog, offset: int) -> None:
    result = log.read(offset, 1 << 20, log.log_end_offset, at_least_one=True)
    assert isinstance(result, ReadResult)
    assert result.slice is not None


Action = Callable[[], object]


def medians_us(actions: list[Action], rounds: int) -> list[float]:
    """The median time of each action. The actions alternate, so other load affects all of them."""
    times: list[list[int]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, times, strict=True):
            start = time.perf_counter_ns()
            action()
            taken.append(time.perf_counter_ns() - start)
    return [statistics.median(taken) / 1_000 for taken in times]


def measure(roots: list[Path], ends: list[int]) -> dict[str, list[float]]:
    def on_each(action: Callable[[PartitionLog, int], object]) -> list[Action]:
        return [partial(action, log, end) for log, end in zip(logs, ends, strict=True)]

    cold = list(zip(roots, ends, strict=True))
    results = {
        "open, clean": medians_us(
            [partial(open_log, root, clean=True, recovery_point=end) for root, end in cold], 50
        ),
        "open, killed": medians_us(
            [partial(open_log, root, clean=False, recovery_point=end) for root, end in cold], 5
        ),
    }
    logs, batch = (
        [open_log(root, clean=True, recovery_point=end) for root, end in cold],
        new_batch(),
    )
    appends = on_each(lambda log, end: append(log, batch))
    results["append 16 KB"] = medians_us(appends, ROUNDS)
    tails = on_each(lambda log, end: fetch(log, log.log_end_offset - 2))
    results["fetch at the tail"] = medians_us(tails, ROUNDS)
    anywhere = on_each(lambda log, end: fetch(log, random.randrange(end)))
    results["fetch at random"] = medians_us(anywhere, ROUNDS)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="measure 10 GB, too")
    parser.add_argument("--dir", type=Path, help="where to write; a temporary directory by default")
    arguments = parser.parse_args()
    sizes = [1, 10] if arguments.large else [1]
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
        roots = [Path(directory) / f"{size}" for size in sizes]
        ends = [fill(root, size * GB) for root, size in zip(roots, sizes, strict=True)]
        os.sync()
        found = measure(roots, ends)
    print("| us (median) | " + " | ".join(f"{size} GB" for size in sizes) + " | ratio |")
    print("|---|" + "---:|" * (len(sizes) + 1))
    for name, times in found.items():
        ratio = f"{times[-1] / times[0]:.2f}" if len(times) > 1 else ""
        print(f"| {name} | " + " | ".join(f"{t:.1f}" for t in times) + f" | {ratio} |")


if __name__ == "__main__":
    main()
