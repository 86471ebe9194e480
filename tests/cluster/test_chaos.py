"""Random faults under full load, then a check of every record on every replica.

`--chaos-minutes 10` is the long run. To repeat a failed run, use its `--chaos-seed`. The faults
then occur in the same order, but the timing of the processes differs.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.audit import compare_replicas, count_all
from tests.cluster.faults import Faults
from tests.cluster.stream import Stream

from tidelog.testing import Cluster

TOPIC, PARTITIONS = "chaos", 6
HOLD_SECONDS = 5.0
SHORT_HOLD_SECONDS = 2.5
"""How long a fault lasts: longer than a broker's session (2 s), so that other nodes take over."""


def test_nothing_acknowledged_is_lost_doubled_or_reordered_whatever_fails(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = float(request.config.getoption("--chaos-minutes"))
    given = request.config.getoption("--chaos-seed")
    seed = random.randrange(1_000_000) if given is None else int(given)
    # pytest shows this line if the test fails.
    print(f"chaos: seed {seed}, {minutes} minutes")
    with capsys.disabled():
        print(f"\nchaos: seed {seed}, {minutes} minutes")

    with Cluster(directory=tmp_path) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, 3, min_insync_replicas=2)
        hold = HOLD_SECONDS if minutes >= 5 else SHORT_HOLD_SECONDS
        faults = Faults(cluster, TOPIC, random.Random(seed), hold)
        began = time.monotonic()
        with Stream(cluster.bootstrap, TOPIC, PARTITIONS) as stream:
            stream.await_acks()
            for act in (*faults.each(), faults.mix, faults.mix):
                perform(act, faults, stream)
            while time.monotonic() - began < 60 * minutes:
                perform(faults.draw(), faults, stream)
        seconds = time.monotonic() - began
        count = count_all(cluster, stream)
        assert not stream.failed, stream.failed[:3]
        assert not stream.strays, stream.strays[:3]
        assert count.is_clean, count
        replicas = compare_replicas(cluster, TOPIC, stream.sent)
    with capsys.disabled():
        happened = ", ".join(f"{kind} {times}" for kind, times in faults.happened.items())
        number = sum(faults.happened.values())
        print(f"  {number} faults, {faults.mixes} mixes, in {seconds:.0f} s: {happened}")
        print(f"  {count}; longest wait of a partition for its next {stream.longest_gap:.1f} s")
        print(
            f"  {len(replicas)} replicas: {sum(one.batches for one in replicas):,} batches, "
            f"{sum(one.bytes for one in replicas):,} bytes, equal byte for byte up to the watermark"
        )
    assert count.acknowledged == sum(stream.sent)


def perform(act: Callable[[], None], faults: Faults, stream: Stream) -> None:
    """Run a fault; afterwards every replica must be in sync again, and writes must continue."""
    print(f"{time.strftime('%H:%M:%S')} after {dict(faults.happened)}")
    act()
    faults.await_whole()
    stream.await_acks()
