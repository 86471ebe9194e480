"""The commands, by section. The module of a command is imported only when the command runs."""

from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from tidelog import __version__
from tidelog.cli.finding import with_hint
from tidelog.cli.help.examples import with_example
from tidelog.cli.help.suggestions import with_suggestion
from tidelog.model.user_error import NoBrokerReached


class Entry(NamedTuple):
    section: str
    module: str
    summary: str


RUN, USE, LOOK, PROVE = "Run a cluster", "Use a cluster", "Look inside", "Prove it"

COMMANDS = {
    "up": Entry(RUN, "up", "Start a local cluster in the foreground."),
    "node": Entry(RUN, "node", "Stop, kill, pause, resume and start single nodes of it."),
    "demo": Entry(RUN, "demos.demo", "Kill leaders under load, and count the lost records."),
    "serve": Entry(RUN, "serve", "Run one node from a server.properties with Kafka's keys."),
    "format": Entry(RUN, "kafka_tools.format", "Prepare a node's log directories, once."),
    "random-uuid": Entry(RUN, "kafka_tools.random_uuid", "Print a new cluster id."),
    "topics": Entry(USE, "kafka_tools.topics", "Create, list, describe, alter and delete topics."),
    "configs": Entry(
        USE, "kafka_tools.configs", "Describe and alter the configuration of topics and brokers."
    ),
    "groups": Entry(
        USE, "kafka_tools.groups", "List and describe groups; reset and delete their offsets."
    ),
    "transactions": Entry(
        USE, "kafka_tools.transactions", "List and describe transactions; end those that hang."
    ),
    "reassign": Entry(
        USE, "kafka_tools.reassign", "Move partitions to other brokers or log directories."
    ),
    "elect": Entry(USE, "kafka_tools.elect", "Elect the leaders of partitions."),
    "delete-records": Entry(
        USE, "kafka_tools.delete_records", "Delete the records before given offsets."
    ),
    "features": Entry(
        USE, "kafka_tools.features", "Show and change the feature levels of the cluster."
    ),
    "produce": Entry(USE, "kafka_tools.produce", "Write lines from standard input to a topic."),
    "consume": Entry(USE, "kafka_tools.consume", "Print the records of a topic."),
    "get-offsets": Entry(
        USE, "kafka_tools.get_offsets", "Print the offsets of partitions at a time."
    ),
    "perf": Entry(USE, "kafka_tools.perf", "Measure producing and consuming."),
    "pipeline": Entry(USE, "pipeline", "Run the pipeline on Spark: ingest, query, health, audit."),
    "tables": Entry(USE, "tables", "Keep tables of topics with Spark, and show their states."),
    "completion": Entry(USE, "completion", "Print the completion script of bash or zsh."),
    "replicas": Entry(
        LOOK, "replicas", "Show the offset, the lag and the sync state of each replica."
    ),
    "explain": Entry(
        LOOK, "explain", "Explain why a partition is unhealthy, and what would repair it."
    ),
    "console": Entry(LOOK, "console", "Serve the web console: the cluster in a browser, live."),
    "observe": Entry(LOOK, "observe", "Record the replication events of any Kafka cluster."),
    "cluster": Entry(LOOK, "cluster", "Describe the cluster: brokers, controller, features."),
    "quorum": Entry(LOOK, "kafka_tools.quorum", "Describe the quorum of controllers."),
    "log-dirs": Entry(
        LOOK, "kafka_tools.log_dirs", "Show the log directories of brokers, as JSON."
    ),
    "dump-log": Entry(
        LOOK, "kafka_tools.dump_log", "Print segments and indexes as they are on disk."
    ),
    "stray": Entry(LOOK, "stray", "List and restore partition directories that were set aside."),
    "whatif": Entry(
        PROVE, "simulation.whatif", "Simulate your own settings under faults: what do I lose if?"
    ),
    "simulate": Entry(
        PROVE, "simulation.simulate", "Run whole clusters under simulated faults, by seed."
    ),
    "bench": Entry(PROVE, "bench", "Measure this machine, alone or beside Apache Kafka."),
}


class Commands(click.Group):
    """A group that has the names and summaries of its commands, so it need not import them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = import_module(f"tidelog.cli.{entry.module}").command
        assert isinstance(command, click.Command)
        _add_examples(command, cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the table. The group of click would import every command for its help."""
        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in (RUN, USE, LOOK, PROVE):
            rows = [(name, e.summary) for name, e in COMMANDS.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=2)


def _add_examples(command: click.Command, path: str) -> None:
    """End the help of a command, and of each command in a group, with its example."""
    command.epilog = with_example(command.epilog, path)
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            _add_examples(one, f"{path} {name}")


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Each command has its own --help. Flags are those of Kafka's tools.",
)
@click.version_option(__version__, message="tidelog %(version)s")
def cli() -> None:
    """Kafka's high-availability log, in Python: Kafka's clients use it unchanged."""


def invoke(arguments: list[str]) -> int:
    """Run one command line. On a usage error, print one sentence and return status 2."""
    try:
        status = cli.main(arguments, prog_name="tidelog", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        return 0
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "tidelog"
        message = " ".join(with_suggestion(error).split()).rstrip(".")
        click.echo(f"tidelog: {message} (see {command} --help).", err=True)
        return 2
    except NoBrokerReached as failure:
        raise with_hint(failure) from None
    except click.Abort:
        return 130
    return status if isinstance(status, int) else 0
