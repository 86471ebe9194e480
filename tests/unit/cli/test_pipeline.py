"""`tidelog pipeline --help` works without Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.cli.commands import invoke
from tidelog.cli.help.examples import EXAMPLES
from tidelog.cli.pipeline import JOBS, start
from tidelog.cli.tables import JOB as TABLES

SOURCES = str(Path(__file__).parents[3] / "src")


MODULES = {
    **{f"pipeline {job}": f"tidelog_pipelines.jobs.{job}" for job in JOBS},
    "tables run": TABLES,
}


@pytest.mark.parametrize("command", MODULES)
def test_a_job_prints_its_help_where_nothing_is_installed(command: str) -> None:
    done = subprocess.run(
        # -S makes Python ignore installed packages.
        [
            sys.executable,
            "-S",
            "-m",
            "tidelog.cli.help.pipeline_help",
            MODULES[command],
            command,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: tidelog {command}")
    assert "--master" in done.stdout
    assert done.stdout.endswith(f"  {EXAMPLES[command]}\n")


def test_help_is_printed_before_anything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def become(program: str, arguments: list[str]) -> None:
        started.append(arguments)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(SystemExit):
        start("ingest", ("--topics", "t", "--help"))
    [[*_, module, job, command]] = started
    assert (module, job) == ("tidelog.cli.help.pipeline_help", "tidelog_pipelines.jobs.ingest")
    assert command == "pipeline ingest"


def test_the_jobs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["pipeline", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {job} " in shown for job in (*JOBS, "demo"))
