"""The commands on the pages about audit and health are run on a cluster.

Spark's jobs run in the session that the tests share; all other commands run as they are written.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import audit, health, report

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PIPELINE = "./tidelog pipeline "
JOBS: dict[str, Callable[[list[str]], int]] = {
    "audit": audit.main,
    "health": health.main,
    "report": report.main,
}


@pytest.mark.parametrize("page", ["pipeline-audit.md", "pipeline-health.md"])
def test_page(
    page: str,
    spark: SparkSession,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "tidelog").symlink_to(ROOT / "tidelog")
    (tmp_path / "tidelog-data").symlink_to(cluster.directory)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", cluster.bootstrap)
    for language, text in FENCE.findall((ROOT / "docs" / page).read_text()):
        if language == "python":
            said = run([sys.executable, "-c", text])
            assert said == ""
            continue
        for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *shown = step.splitlines()
            if command.startswith(PIPELINE):
                job, *arguments = shlex.split(command.removeprefix(PIPELINE))
                assert JOBS[job](arguments) == 0, capsys.readouterr()
                said = capsys.readouterr().out
            else:
                said = run(["sh", "-c", command])
            if shown:
                assert said.splitlines()[-len(shown) :] == shown


def run(command: Sequence[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
