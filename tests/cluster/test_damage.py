"""Damages the files of a node that is down, starts the node again, and checks all records.

`--rounds 1000` is the long run, and takes the kinds of damage in turn. To repeat a failed round,
use `--rounds 1 --seed S`. The repetition does the same damage on a new cluster, but the timing of
the processes differs.
"""

import random
from pathlib import Path

import pytest
from tests.cluster.damage.campaign import Campaign
from tests.cluster.damage.kinds import KINDS

EVERY_TIME = [
    "epochs garbage",
    "snapshot flipped",
    "meta properties gone",
    "index flipped",
    "log cut",
    "time index flipped",
    "producer snapshot flipped",
    "data directory emptied",
    "strays planted",
    "index without a log",
]
"""The kinds of damage in every test run; the position in this list is the seed."""


def test_f54_f59_no_damage_to_one_nodes_files_loses_or_falsifies_a_record_or_goes_unnoticed(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds, seed = request.config.getoption("--rounds"), request.config.getoption("--seed")
    kinds = request.config.getoption("--damage")
    assert kinds is None or set(kinds) <= set(KINDS), f"--damage is one of {', '.join(KINDS)}"
    if rounds is None and seed is None:
        kinds = kinds or EVERY_TIME
        seeds = range(len(kinds))
    else:
        first = random.randrange(1_000_000) if seed is None else seed
        seeds = range(first, first + (rounds or 1))

    def tell(line: str) -> None:
        print(line)  # pytest shows this line if the test fails
        with capsys.disabled():
            print(line, flush=True)

    tell(f"\ndamage: {len(seeds)} rounds, seeds {seeds[0]} to {seeds[-1]}")
    campaign = Campaign(tmp_path, tell, kinds)
    campaign.run(seeds)
    for line in campaign.table():
        tell(line)
    failed = [one for one in campaign.outcomes if one.problems]
    assert not failed, "\n".join(map(str, failed))
    assert not campaign.ends, campaign.ends
