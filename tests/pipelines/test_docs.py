"""The commands on the page about ingest are run in order, and print what the page shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cluster.documented_commands import Newcomer, Step, steps

from tidelog_pipelines.jobs import ingest, query, transform

PAGE = Path(__file__).parents[2] / "docs" / "pipeline-ingest.md"
FENCE = re.compile(r"^( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
UP, PIPELINE, CUT = "./tidelog up", "./tidelog pipeline ", " | cut -f 2-"
JOBS: dict[str, Any] = {"ingest": ingest, "query": query, "transform": transform}
ON_STDERR = re.compile(r"batch \d+: ")


def transcript() -> Iterator[Step]:
    for indent, block in FENCE.findall(PAGE.read_text()):
        yield from steps(re.sub(f"^{indent}", "", block, flags=re.MULTILINE))


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    someone = Newcomer(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", someone.bootstrap)
    yield someone
    if someone.cluster is not None and someone.cluster.poll() is None:
        someone.presses_ctrl_c()


def test_everything_on_the_page_works_as_shown(
    spark: SparkSession, newcomer: Newcomer, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in transcript():
        if step.command == UP:
            newcomer.starts_a_cluster(Step(UP, [f"bootstrap {newcomer.bootstrap}"]))
        elif step.command.startswith(PIPELINE):
            # Run the job in the shared session: a new Spark for each command takes too long.
            job, *arguments = shlex.split(step.command[len(PIPELINE) :].removesuffix(CUT))
            JOBS[job].run(spark, JOBS[job].parsed(arguments))
            printed = capsys.readouterr().out.splitlines()
            if step.command.endswith(CUT):
                printed = [line.partition("\t")[2] for line in printed]
            shown = [line for line in step.shown if not ON_STDERR.match(line)]
            assert not shown or printed == shown, step.command
        else:
            newcomer.does(step)
