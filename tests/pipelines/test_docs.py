"""The commands on the pages about tables are run, in order, and print the output shown there."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.cluster.documented_commands import Newcomer, Step, steps
from tests.pipelines.schema_registry import running

from tidelog_pipelines.jobs import ingest, maintain, query, replay, transform
from tidelog_pipelines.jobs.topic_tables import run as tables

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "pipeline-ingest.md",
    "pipeline-replay.md",
    "pipeline-upsert.md",
    "pipeline-operations.md",
    "pipeline-registry.md",
    "tables.md",
)
REGISTRY = "http://127.0.0.1:8081"
"""The address of the schema registry on the pages."""
FENCE = re.compile(r"^( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
UP, CUT = "./tidelog up", " | cut -f 2-"
JOBS: dict[str, Any] = {
    "pipeline ingest": ingest,
    "pipeline maintain": maintain,
    "pipeline query": query,
    "pipeline replay": replay,
    "pipeline transform": transform,
    "tables run": tables,
}
JOB = re.compile(rf"\./tidelog ({'|'.join(JOBS)}) (.*)")
ON_STDERR = re.compile(r"batch \d+: ")


def transcript(page: str, registry: str) -> Iterator[Step]:
    text = (DOCS / page).read_text().replace(REGISTRY, registry)
    for indent, block in FENCE.findall(text):
        yield from steps(re.sub(f"^{indent}", "", block, flags=re.MULTILINE))


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    someone = Newcomer(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDELOG_BOOTSTRAP_SERVER", someone.bootstrap)
    yield someone
    if someone.cluster is not None and someone.cluster.poll() is None:
        someone.presses_ctrl_c()


@pytest.mark.parametrize("page", PAGES)
def test_everything_on_the_page_works_as_shown(
    spark: SparkSession, newcomer: Newcomer, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    with running() as registry:
        for step in transcript(page, registry.url):
            follow(step, spark, newcomer, capsys)


def follow(
    step: Step, spark: SparkSession, newcomer: Newcomer, capsys: pytest.CaptureFixture[str]
) -> None:
    if step.command == UP:
        newcomer.starts_a_cluster(Step(UP, [f"bootstrap {newcomer.bootstrap}"]))
    elif found := JOB.fullmatch(step.command.removesuffix(CUT)):
        # Run the job in the suite's session, because a new Spark for each command would take too
        # long.
        job = JOBS[found.group(1)]
        job.run(spark, job.parsed(shlex.split(found.group(2))))
        printed = capsys.readouterr().out.splitlines()
        if step.command.endswith(CUT):
            printed = [line.partition("\t")[2] for line in printed]
        shown = [line for line in step.shown if not ON_STDERR.match(line)]
        assert not shown or printed == shown, step.command
    else:
        newcomer.does(step)
