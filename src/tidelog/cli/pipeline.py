"""`tidelog pipeline JOB`: starts a job of tidelog_pipelines in an environment that has Spark.

In a checkout, Spark is installed on first use. Elsewhere, it comes with the extra tidelog[spark].
This module does not import Spark, because the job replaces this process.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import click

from tidelog.cli.finding import found_bootstrap
from tidelog.cli.help.examples import with_example
from tidelog.model.user_error import UserError

ROOT = Path(__file__).parents[3]
SETUP = ROOT / "tools" / "make_environment.py"

JOBS = {
    "ingest": "Write topics to tables, each record once, even if processes crash.",
    "query": "Query these tables with SQL.",
    "replay": "Decode quarantined records again, and move those that pass to their tables.",
    "maintain": "Compact these tables, and remove expired rows and unused files.",
    "transform": "Write windowed totals of a topic to another topic, as an example.",
    "health": "Report which replicas were out of sync, when, how long and why.",
    "report": "Write the report of `health` as a page with plots.",
    "audit": "Prove that no acknowledged record was lost, duplicated, reordered or changed.",
}
DEMO = "demo"
"""A job that starts its own brokers, so it needs no running cluster."""
NAMES_CLUSTER = ("--bootstrap-server", "--config")
"""The options of a job that can name the cluster."""


class PipelineJobs(click.Group):
    """The jobs; each parses its own arguments."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*JOBS, DEMO]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == DEMO:
            from tidelog.cli.demos.pipeline_demo import command as demo

            demo.epilog = with_example(demo.epilog, "pipeline demo")
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

    The first run of a job downloads PySpark, its connector for Kafka, Delta and, if the machine has
    none, a Java: about 500 MB. `pipeline JOB --help` works without them.
    """


def start(job: str, arguments: tuple[str, ...]) -> NoReturn:
    """Replace this process with the job."""
    start_module(f"tidelog_pipelines.jobs.{job}", f"pipeline {job}", arguments)


def start_module(module: str, command: str, arguments: tuple[str, ...]) -> NoReturn:
    """Replace this process with a job. Its --help works before Spark is installed."""
    if not {"-h", "--help"}.isdisjoint(arguments):
        _become("tidelog.cli.help.pipeline_help", module, command)
    prepare()
    if not any(one.partition("=")[0] in NAMES_CLUSTER for one in arguments):
        os.environ.setdefault("TIDELOG_BOOTSTRAP_SERVER", found_bootstrap())
    _become(module, *arguments)


def _become(module: str, *arguments: str) -> NoReturn:
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])


def prepare() -> None:
    """Make sure that this Python has the libraries that the jobs import."""
    if SETUP.exists() and Path(sys.prefix) == ROOT / ".venv":
        if subprocess.run([sys.executable, str(SETUP), "spark"], check=False).returncode != 0:
            raise UserError("the pipeline cannot start without its environment.")
    elif importlib.util.find_spec("pyspark") is None:
        raise UserError("the pipeline needs PySpark: pip install 'tidelog[spark]'.")
