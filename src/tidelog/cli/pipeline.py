"""`tidelog pipeline JOB`: starts a job of tidelog_pipelines in an environment that has Spark.

In a checkout the environment is completed on first use; elsewhere it is the extra tidelog[spark].
Nothing of Spark is imported here: the job is a process of its own that takes this one's place.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import click

from tidelog.model.user_error import UserError

ROOT = Path(__file__).parents[3]
SETUP = ROOT / "tools" / "make_environment.py"

JOBS = {
    "ingest": "Topics to tables: each record once, through crashes of anything.",
    "query": "A question in SQL to these tables.",
    "transform": "A topic to another: windowed totals with late data, as an example.",
    "health": "Replication events to answers: who was out of sync, when, how long and why.",
    "report": "The same as a page with plots, for a browser or a wall.",
    "audit": "Prove that nothing acknowledged was lost, doubled, reordered or changed.",
}
DEMO = "demo"
"""Which has brokers of its own, too."""


class PipelineJobs(click.Group):
    """A group of jobs, which read their arguments themselves."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*JOBS, DEMO]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == DEMO:
            from tidelog.cli.demos.pipeline_demo import command as demo

            return demo
        if cmd_name not in JOBS:
            return None
        return click.Command(
            cmd_name,
            callback=lambda arguments: start(cmd_name, arguments),
            params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
            context_settings={"ignore_unknown_options": True, "help_option_names": []},
            help=JOBS[cmd_name],
        )


@click.group("pipeline", cls=PipelineJobs, epilog="Each job has its own --help.")
def command() -> None:
    """Run the data pipeline on Spark, embedded or on a cluster.

    The first use fetches PySpark, its connector for Kafka, Delta and, where there is none, a Java.
    """


def start(job: str, arguments: tuple[str, ...]) -> int:
    """Become the job."""
    prepare()
    os.execv(
        sys.executable,
        [sys.executable, "-P", "-m", f"tidelog_pipelines.jobs.{job.replace('-', '_')}", *arguments],
    )


def prepare() -> None:
    """Make sure that this Python has what the jobs import."""
    if SETUP.exists() and Path(sys.prefix) == ROOT / ".venv":
        if subprocess.run([sys.executable, str(SETUP), "spark"], check=False).returncode != 0:
            raise UserError("the pipeline cannot start without its environment.")
    elif importlib.util.find_spec("pyspark") is None:
        raise UserError("the pipeline needs PySpark: pip install 'tidelog[spark]'.")
