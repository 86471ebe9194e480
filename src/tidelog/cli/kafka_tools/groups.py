"""`tidelog groups`: manages groups, with the flags and the output of kafka-consumer-groups.sh."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click

from tidelog.cli import options
from tidelog.cli.kafka_tools.group_reset import (
    GroupCommandFailed,
    Offsets,
    ResetScenario,
    named_partitions,
    new_offsets,
    read_plans,
)
from tidelog.cli.output import group_report
from tidelog.client.admin import RequestRefused
from tidelog.client.administration import group_admin
from tidelog.client.administration.group_description import GroupDescription, describe_group
from tidelog.client.administration.group_lag import group_positions
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import default_message, exception_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

ACTIONS = ("list", "describe", "reset_offsets", "delete", "delete_offsets")
ONLY_WITH = {
    "group": ("describe", "reset_offsets", "delete", "delete_offsets"),
    "all_groups": ("describe", "reset_offsets", "delete"),
    "topic": ("reset_offsets", "delete_offsets"),
    "all_topics": ("reset_offsets",),
    "type": ("list",),
    "state": ("list", "describe"),
    "members": ("describe",),
    "offsets": ("describe",),
    "verbose": ("describe",),
    "dry_run": ("reset_offsets",),
    "execute": ("reset_offsets",),
    "export": ("reset_offsets",),
    **{field.name: ("reset_offsets",) for field in fields(ResetScenario)},
}
"""The actions for which each option is valid. As in Kafka's tool, other uses are refused."""

STATES = (
    *("Empty", "Stable", "Dead", "Assigning", "Reconciling"),
    *("PreparingRebalance", "CompletingRebalance"),
)
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
TYPES = ("Consumer", "Classic")
NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
    "command will require either --dry-run or --execute to be specified. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current "
    "default behavior without prompting."
)
ANY = ""
"""The value of --state and --type without an argument."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The options of the command line, as click parses them, without those of a reset."""

    group: tuple[str, ...]
    all_groups: bool
    topic: tuple[str, ...]
    all_topics: bool
    type: str | None
    state: str | None
    members: bool
    offsets: bool
    verbose: bool
    dry_run: bool
    execute: bool
    export: bool


def reset_options(command: F) -> F:
    for add in (
        click.option("--to-earliest", is_flag=True, help="Set offsets to the start of the log."),
        click.option("--to-latest", is_flag=True, help="Set offsets to the end of the log."),
        click.option("--to-offset", type=int, metavar="N", help="Set offsets to this offset."),
        click.option(
            "--to-datetime",
            metavar="TIME",
            help="Set offsets to this time: 2026-01-31T12:00:00.000.",
        ),
        click.option(
            "--by-duration", metavar="DURATION", help="Go back by this time: PT1H30M, P2D."
        ),
        click.option("--shift-by", type=int, metavar="N", help="Add N; N may be negative."),
        click.option("--to-current", is_flag=True, help="Set offsets to the committed ones."),
        click.option(
            "--from-file", metavar="FILE", help="Set offsets from a CSV file of --export."
        ),
        click.option("--dry-run", is_flag=True, help="Show the new offsets only (the default)."),
        click.option("--execute", is_flag=True, help="Commit the new offsets."),
        click.option("--export", is_flag=True, help="Print the new offsets as CSV."),
    ):
        command = add(command)
    return command


@click.command("groups")
@click.option("--list", is_flag=True, help="List groups.")
@click.option("--describe", is_flag=True, help="Show the offsets and the lag of groups.")
@click.option("--reset-offsets", is_flag=True, help="Set the offsets of groups without members.")
@click.option("--delete", is_flag=True, help="Delete groups without members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of topics.")
@options.bootstrap_server
@click.option("--group", multiple=True, metavar="NAME", help="A group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option(
    "--topic", multiple=True, metavar="T[:0,1]", help="A topic, or some of its partitions."
)
@click.option("--all-topics", is_flag=True, help="All topics with committed offsets.")
@click.option(
    "--state",
    is_flag=False,
    flag_value=ANY,
    metavar="[STATES]",
    help="Show states; with --list, only groups in these states.",
)
@click.option(
    "--type",
    is_flag=False,
    flag_value=ANY,
    metavar="[TYPES]",
    help="With --list: show types, or only groups of these types.",
)
@click.option("--members", is_flag=True, help="With --describe: show members.")
@click.option("--offsets", is_flag=True, help="With --describe: show offsets (the default).")
@click.option("--verbose", is_flag=True, help="With --describe: show more columns.")
@reset_options
@click.option(
    "--timeout",
    type=click.IntRange(min=1),
    default=30_000,
    show_default=True,
    metavar="MS",
    help="How long to wait for an answer of a broker.",
)
@options.command_config("--command-config")
def command(bootstrap_server: str, timeout: int, **given: Any) -> None:
    """List, describe, reset and delete groups, with the flags of kafka-consumer-groups.sh."""
    actions = [action for action in ACTIONS if given.pop(action)]
    if len(actions) != 1:
        raise click.UsageError(f"exactly one of {_flags(ACTIONS)} is needed")
    (action,) = actions
    options.refuse_misplaced(action, given, ONLY_WITH)
    scenario = ResetScenario(**{one.name: given.pop(one.name) for one in fields(ResetScenario)})
    wanted = GroupOptions(**given)
    if action != "list":
        _check_groups(wanted)
    with Client(bootstrap_server, timeout / 1000, tell=options.tell) as client:
        try:
            if action == "reset_offsets":
                reset_offsets(client, wanted, scenario)
            else:
                run = {"list": list_, "describe": describe, "delete": delete}
                (run.get(action) or delete_offsets)(client, wanted)
        except GroupCommandFailed as failed:
            # Kafka's tool ends with status 0, too.
            click.echo(f"\nError: Executing consumer group command failed due to {failed}")


def _flags(names: Iterable[str]) -> str:
    *others, last = map(options.flag, names)
    return f"{', '.join(others)} and {last}"


def _check_groups(wanted: GroupOptions) -> None:
    if bool(wanted.group) == wanted.all_groups:
        raise click.UsageError("exactly one of --group and --all-groups is needed")


def _groups(client: Client, wanted: GroupOptions) -> list[str]:
    if wanted.all_groups:
        return [group.name for group in group_admin.consumer_groups(client)]
    return list(dict.fromkeys(wanted.group))


def _chosen(text: str | None, known: Iterable[str], kind: str) -> list[str]:
    """Parse a list of states or types. Their case does not matter."""
    if not text:
        return []
    by_name = {name.lower(): name for name in known}
    names = [name.strip().lower() for name in text.split(",")]
    if not by_name.keys() >= set(names):
        valid = f"Valid {kind}s are: {', '.join(known)}"
        raise click.UsageError(
            f"Invalid {'types' if kind == 'type' else kind} list '{text}'. {valid}"
        )
    return [by_name[name] for name in names]


def list_(client: Client, wanted: GroupOptions) -> None:
    states = _chosen(wanted.state, STATES, "state")
    types = _chosen(wanted.type, TYPES, "type")
    groups = group_admin.consumer_groups(client, states=states, types=types)
    if wanted.state is None and wanted.type is None:
        for group in groups:
            click.echo(group.name)
        return
    shown = group_report.listing(
        groups, types=wanted.type is not None, states=wanted.state is not None
    )
    for line in shown:
        click.echo(line)


def describe(client: Client, wanted: GroupOptions) -> None:
    if sum((wanted.members, wanted.offsets, wanted.state is not None)) > 1:
        raise click.UsageError("--describe takes one of --members, --offsets and --state")
    if wanted.state:
        raise click.UsageError("--describe does not take a value for --state")
    try:
        described = [describe_group(client, group) for group in sorted(_groups(client, wanted))]
    except RequestRefused as refused:
        raise GroupCommandFailed(exception_text(refused.error, str(refused))) from None
    for group in described:
        _describe(client, group, wanted)


def _describe(client: Client, group: GroupDescription, wanted: GroupOptions) -> None:
    _note_state(group)
    verbose = wanted.verbose
    if wanted.members:
        lines = group_report.members(group, verbose=verbose)
    elif wanted.state is not None:
        lines = group_report.state(group, verbose=verbose)
    else:
        positions = group_positions(client, group)
        if not positions:
            return
        lines = group_report.offsets(group.name, positions, verbose=verbose)
    for line in lines:
        click.echo(line)


def _note_state(group: GroupDescription) -> None:
    if group.state == "Dead":
        raise GroupCommandFailed(f"Consumer group '{group.name}' does not exist.")
    if group.state == "Empty":
        click.echo(f"\nConsumer group '{group.name}' has no active members.", err=True)
    elif group.state in REBALANCING:
        click.echo(f"\nWarning: Consumer group '{group.name}' is rebalancing.", err=True)


def delete(client: Client, wanted: GroupOptions) -> None:
    errors = {group: group_admin.delete_group(client, group) for group in _groups(client, wanted)}
    deleted = ", ".join(f"'{group}'" for group, error in errors.items() if error is ErrorCode.none)
    failed = {group: error for group, error in errors.items() if error is not ErrorCode.none}
    if not failed:
        click.echo(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    click.echo("\nError: Deletion of some consumer groups failed:")
    for group, error in failed.items():
        click.echo(f"* Group '{group}' could not be deleted due to: {exception_text(error)}")
    if deleted:
        click.echo(f"\nThese consumer groups were deleted successfully: {deleted}")


def delete_offsets(client: Client, wanted: GroupOptions) -> None:
    if len(wanted.group) != 1 or not wanted.topic:
        raise click.UsageError("--delete-offsets needs one --group and at least one --topic")
    (group,) = wanted.group
    statuses: dict[TopicPartition, str] = {}
    partitions: list[TopicPartition] = []
    for topic in wanted.topic:
        try:
            partitions += named_partitions(client, [topic])
        except GroupCommandFailed:
            missing = exception_text(ErrorCode.unknown_topic_or_partition)
            statuses[TopicPartition(topic, -1)] = f"Error: {missing}"
    outcome = _deleted_offsets(client, group, partitions)
    for where, error in outcome.items():
        is_done = error is ErrorCode.none
        statuses[where] = "Successful" if is_done else f"Error: {exception_text(error)}"
    for line in group_report.deletions(statuses):
        click.echo(line)


def _deleted_offsets(
    client: Client, group: str, partitions: list[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Delete the offsets, print a summary, and return the outcome of each partition."""
    try:
        outcome = group_admin.delete_offsets(client, group, partitions)
    except RequestRefused as refused:
        click.echo(f"\nError: {default_message(refused.error)}")
        return dict.fromkeys(partitions, refused.error)
    if any(error is not ErrorCode.none for error in outcome.values()):
        click.echo("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        click.echo(f"Request succeeded for deleting offsets from group {group}.")
    return outcome


def reset_offsets(client: Client, wanted: GroupOptions, scenario: ResetScenario) -> None:
    names = [one.name for one in fields(scenario) if options.is_given(getattr(scenario, one.name))]
    if len(names) != 1:
        every = _flags(one.name for one in fields(scenario))
        raise click.UsageError(f"--reset-offsets needs exactly one of {every}")
    if wanted.dry_run and wanted.execute:
        raise click.UsageError("--reset-offsets takes only one of --execute and --dry-run")
    if not (wanted.topic or wanted.all_topics or scenario.from_file):
        raise click.UsageError("One of the reset scopes should be defined: --all-topics, --topic")
    if not (wanted.dry_run or wanted.execute):
        click.echo(NOT_EXECUTED, err=True)
    plans = read_plans(scenario.from_file, wanted.group) if scenario.from_file else {}
    done = {
        group: _reset(client, group, wanted, scenario, plans) for group in _groups(client, wanted)
    }
    if wanted.export:
        _export(done, with_group=len(wanted.group) != 1)
        return
    for line in group_report.new_offsets(done):
        click.echo(line)


def _reset(
    client: Client,
    group: str,
    wanted: GroupOptions,
    scenario: ResetScenario,
    plans: dict[str, Offsets],
) -> Offsets:
    try:
        state = describe_group(client, group).state
        if state not in ("Empty", "Dead"):
            click.echo(
                f"\nError: Assignments can only be reset if the group '{group}' is inactive, "
                f"but the current state is {state}."
            )
            return {}
    except RequestRefused as refused:
        if refused.error is not ErrorCode.group_id_not_found:
            raise GroupCommandFailed(str(refused)) from None
    partitions: list[TopicPartition] = []
    if wanted.all_topics:
        partitions = list(group_admin.committed_offsets(client, group))
    elif wanted.topic:
        partitions = named_partitions(client, wanted.topic)
    offsets = new_offsets(client, group, partitions, scenario, plans)
    if wanted.execute and offsets:
        try:
            group_admin.commit_offsets(client, group, offsets)
        except RequestRefused as refused:
            raise GroupCommandFailed(str(refused)) from None
    return offsets


def _export(plan: dict[str, Offsets], *, with_group: bool) -> None:
    for group, offsets in plan.items():
        for where, offset in sorted(offsets.items()):
            name = f"{group}," if with_group else ""
            click.echo(f"{name}{where.topic},{where.partition},{offset}")
    click.echo()
