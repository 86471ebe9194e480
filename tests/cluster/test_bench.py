"""`tidelog bench` measures a real cluster, and writes a table, a JSON file and a page."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = [sys.executable, "-P", "-m", "tidelog.cli.main", "bench", "--quick"]
SHORT = ["--seconds", "0.3", "--warm-up", "0.3"]


def test_every_measure_has_a_figure(tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [*BENCH, *SHORT, "--out", str(out), "--work", str(work)],
        capture_output=True,
        text=True,
        check=True,
    )
    results = json.loads((out / "results.json").read_text())
    names = [measure["name"] for measure in results["measures"]]
    assert "cold start to the first acks=all write" in names
    assert "ack p99.9, 1,000 requests/s" in names
    assert "consume, records of 1,024 B" in names
    assert names[-1] == "no writes after kill -9 of a leader"
    for measure in results["measures"]:
        (value,) = measure["systems"]["tidelog"]["values"]
        # A short span may have used less than a tick of CPU time.
        assert value > 0 or "CPU" in measure["name"], measure
        assert measure["name"] in done.stdout
        assert measure["name"] in done.stderr, "each figure is shown when it is there"
    assert "<svg" in (out / "index.html").read_text()
    assert list(work.iterdir()) == [], "no data and no broker is left"


def test_a_group_can_be_chosen(tmp_path: Path) -> None:
    command = [*BENCH, *SHORT, "--only", "start", "--repeats", "2", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    results = json.loads((tmp_path / "results.json").read_text())
    assert len(results["measures"]) == 3
    assert all(len(one["systems"]["tidelog"]["values"]) == 2 for one in results["measures"])
