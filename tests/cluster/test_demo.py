"""The demonstrations `demo` and `demo acks`."""

import re

from tests.clients.systems import PATIENCE
from tests.cluster.foreground import tidelog


def test_the_demo_loses_and_doubles_nothing() -> None:
    output = tidelog("demo", "--pace", "0.1", patience=5 * PATIENCE)
    assert re.search(r"kill -9 of node \d, the leader", output)
    assert re.search(r"In-sync replicas: 1 2 3 -> \d \d; writes no longer wait for \d", output)
    assert re.search(r"The high watermark has not moved back: it was [\d,]+ and is \d", output)
    assert re.search(r"Broker \d has caught up and is in sync again", output)
    assert re.search(r"Broker \d leads, in epoch \d+, \d+ ms after the kill", output)
    assert re.search(r"kill -9 of node \d, the active controller", output)
    assert re.search(r"Node \d is the active controller, \d+ ms after the kill", output)
    assert re.search(r"^acknowledged [\d,]+, lost 0, duplicated 0$", output, re.MULTILINE)


def test_every_combination_of_acks_loses_what_it_must_and_keeps_what_it_promises() -> None:
    output = tidelog("demo", "acks", patience=5 * PATIENCE)
    rows = re.findall(
        r"^ +(0|1|all) +(1|3) +(1|2) +(\d+) +(\d+) +(\d+) +(\d+)  [A-Z]", output, re.MULTILINE
    )
    assert len(rows) == 12
    losses = {row[:3]: (row[3:5], row[5:7]) for row in rows}
    lost, kept = ("100", "100"), ("100", "0")
    safe = {("all", "3", "1"): (kept, lost), ("all", "3", "2"): (kept, kept)}
    assert losses == {cell: safe.get(cell, (lost, lost)) for cell in losses}
    print(output)
