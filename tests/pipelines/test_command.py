"""`./tidelog pipeline`, as a user calls it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tidelog(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [ROOT / "tidelog", "pipeline", *arguments], capture_output=True, text=True, check=False
    )


def test_the_jobs_are_listed() -> None:
    done = tidelog("--help")
    assert done.returncode == 0
    assert "ingest" in done.stdout
    assert "transform" in done.stdout


def test_a_job_tells_its_own_settings() -> None:
    done = tidelog("ingest", "--help")
    assert done.returncode == 0, done.stderr
    assert "usage: tidelog pipeline ingest" in done.stdout
    assert "--value-format" in done.stdout


def test_a_job_reports_what_it_cannot_do() -> None:
    done = tidelog("ingest", "--topics", "t")
    assert done.returncode == 2
    assert "missing: --out" in done.stderr


def test_an_unknown_job_is_refused() -> None:
    done = tidelog("inject")
    assert done.returncode == 2
    assert done.stderr == (
        "tidelog: No such command 'inject'. Did you mean 'ingest'? (see tidelog pipeline --help).\n"
    )
