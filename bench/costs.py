"""Print how many function calls common operations cost a node, and compare with the table.

    python bench/costs.py [--write]

The table is tests/sim/costs.json, which tests/sim/test_costs.py also uses. `--write` replaces the
table. The counts come from the simulator, so they do not depend on the machine.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.sim.cost_table import PATH, read, written

from tidelog.sim.machines.silence import silenced
from tidelog.sim.runs.costs import costs


@silenced()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the committed table")
    options = parser.parse_args()
    found, before = costs(), read() if PATH.exists() else {}
    print(f"{'work':45}{'calls':>9}{'committed':>11}")
    for cost in found:
        known = f"{before[cost.work].calls:11.1f}" if cost.work in before else f"{'-':>11}"
        print(f"{cost.work:45}{cost.calls:9.1f}{known}")
    if options.write:
        PATH.write_text(written(found))


if __name__ == "__main__":
    main()
