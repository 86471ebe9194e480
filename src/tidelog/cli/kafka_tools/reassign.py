"""`tidelog reassign`: moves partitions, with the flags of kafka-reassign-partitions.sh."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import click

from tidelog.cli import options
from tidelog.cli.kafka_tools import log_dir_moves, replication_throttles
from tidelog.cli.kafka_tools.log_dirs import parse_brokers
from tidelog.cli.kafka_tools.reassignment_plan import (
    ReassignmentPlan,
    check_plan,
    duplicates,
    plan_json,
    proposal,
    read_plan,
    read_topics,
)
from tidelog.client.admin import Reassignment, ongoing_reassignments
from tidelog.client.administration.reassignment_admin import ReplicaPlace, reassign
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import exception_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
ONLY_WITH = {
    "reassignment_json_file": ("execute", "verify", "cancel"),
    "topics_to_move_json_file": ("generate",),
    "broker_list": ("generate",),
    "disable_rack_aware": ("generate",),
    "throttle": ("execute",),
    "replica_alter_log_dirs_throttle": ("execute",),
    "additional": ("execute",),
    "disallow_replication_factor_change": ("execute",),
    "preserve_throttles": ("verify", "cancel"),
}
"""The actions for which each option is valid. As in Kafka's tool, other uses are refused."""

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)


@dataclass(frozen=True, slots=True)
class ReassignOptions:
    """The options of the command line, as click parses them."""

    reassignment_json_file: str | None
    topics_to_move_json_file: str | None
    broker_list: str | None
    disable_rack_aware: bool
    throttle: int | None
    replica_alter_log_dirs_throttle: int | None
    timeout: int
    additional: bool
    disallow_replication_factor_change: bool
    preserve_throttles: bool


@click.command("reassign")
@click.option("--generate", is_flag=True, help="Propose a plan; changes nothing.")
@click.option("--execute", is_flag=True, help="Start a plan.")
@click.option("--verify", is_flag=True, help="Show its state; at its end, remove the throttles.")
@click.option("--cancel", is_flag=True, help="Cancel what is in progress, remove the throttles.")
@click.option("--list", is_flag=True, help="List the reassignments in progress.")
@options.bootstrap_server
@click.option("--reassignment-json-file", metavar="FILE", help="The plan.")
@click.option("--topics-to-move-json-file", metavar="FILE", help="The topics for --generate.")
@click.option("--broker-list", metavar="ID,ID", help="The brokers for --generate.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks.")
@click.option("--throttle", type=click.IntRange(min=-1), help="Bytes per second between brokers.")
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=click.IntRange(min=-1),
    help="Bytes per second between log directories.",
)
@click.option(
    "--timeout",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="How long to wait until a move between log directories starts.",
)
@click.option("--additional", is_flag=True, help="Even if other reassignments are in progress.")
@click.option(
    "--disallow-replication-factor-change",
    is_flag=True,
    help="Refuse a plan that changes the number of replicas.",
)
@click.option("--preserve-throttles", is_flag=True, help="Do not remove the throttles.")
@options.command_config("--command-config")
def command(bootstrap_server: str, **given: Any) -> None:
    """Move partitions to other brokers, with the flags of kafka-reassign-partitions.sh."""
    actions = [action for action in ACTIONS if given.pop(action)]
    if len(actions) != 1:
        raise click.UsageError(
            "exactly one of --generate, --execute, --verify, --cancel and --list is needed"
        )
    (action,) = actions
    options.refuse_misplaced(action, given, ONLY_WITH)
    wanted = ReassignOptions(**given)
    if action in ONLY_WITH["reassignment_json_file"] and wanted.reassignment_json_file is None:
        raise click.UsageError(f"--{action} needs --reassignment-json-file")
    run = {"generate": generate, "execute": execute, "verify": verify, "cancel": cancel}
    with Client(bootstrap_server, tell=options.tell) as client:
        run.get(action, list_)(client, wanted)


def generate(client: Client, wanted: ReassignOptions) -> None:
    if wanted.topics_to_move_json_file is None or wanted.broker_list is None:
        raise click.UsageError("--generate needs --topics-to-move-json-file and --broker-list")
    brokers = wanted.broker_list.split(",")
    if twice := duplicates(brokers):
        raise UserError(f"Broker list contains duplicate entries: [{', '.join(twice)}]")
    wanted_brokers = parse_brokers(wanted.broker_list)
    topics = read_topics(wanted.topics_to_move_json_file)
    current = _assignment(client, topics)
    racks = _racks(client, wanted_brokers, use_racks=not wanted.disable_rack_aware)
    proposed = proposal(current, racks, random.Random())
    click.echo("Current partition replica assignment")
    click.echo(plan_json(current, _directories(client, current)))
    click.echo("\nProposed partition reassignment configuration")
    click.echo(plan_json(proposed, {}))


def _racks(
    client: Client, brokers: Collection[NodeId], *, use_racks: bool
) -> dict[NodeId, str | None]:
    known = client.metadata(topics=()).brokers
    racks = {one.node_id: one.rack if use_racks else None for one in known}
    found = {node: racks[node] for node in sorted(racks) if node in brokers}
    rackless = sum(rack is None for rack in found.values())
    if use_racks and 0 < rackless < len(found):
        raise UserError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    return found


def _assignment(client: Client, topics: Collection[str]) -> dict[TopicPartition, list[NodeId]]:
    """The replicas of all partitions of these topics, which must exist."""
    replicas = {}
    for topic in client.metadata(tuple(sorted(topics))).topics if topics else ():
        if topic.error_code is ErrorCode.unknown_topic_or_partition:
            missing = f"Topic {topic.name} not found."
            raise UserError(exception_text(topic.error_code, missing))
        for one in topic.partitions:
            where = TopicPartition(topic.name or "", one.partition_index)
            replicas[where] = list(one.replica_nodes)
    return replicas


def _directories(
    client: Client, assignment: Mapping[TopicPartition, Collection[NodeId]]
) -> dict[ReplicaPlace, str]:
    places = [
        ReplicaPlace(node, where) for where, replicas in assignment.items() for node in replicas
    ]
    found = log_dir_moves.replica_directories(client, places)
    return {place: one.current for place, one in found.items() if one.current is not None}


def execute(client: Client, wanted: ReassignOptions) -> None:
    plan = _plan(wanted)
    check_plan(plan)
    ongoing = ongoing_reassignments(client)
    if ongoing and not wanted.additional:
        raise UserError(EXISTING)
    current = _current(client, plan)
    click.echo("Current partition replica assignment\n")
    click.echo(plan_json(current, _directories(client, current)))
    click.echo("\nSave this to use as the --reassignment-json-file option during rollback")
    _throttle(client, wanted, plan, ongoing, current)
    errors = reassign(client, plan.replicas, keep_factor=wanted.disallow_replication_factor_change)
    if errors:
        lines = [f"{where}: {message}" for where, message in sorted(errors.items())]
        raise UserError("\n".join(["Error reassigning partition(s):", *lines]))
    plural = "" if len(plan.targets) == 1 else "s"
    names = ",".join(str(where) for where in sorted(plan.replicas))
    click.echo(f"Successfully started partition reassignment{plural} for {names}")
    log_dir_moves.start_moves(client, plan.directories, wanted.timeout)


def _plan(wanted: ReassignOptions) -> ReassignmentPlan:
    assert wanted.reassignment_json_file is not None
    return read_plan(wanted.reassignment_json_file)


def _current(client: Client, plan: ReassignmentPlan) -> dict[TopicPartition, list[NodeId]]:
    """The replicas of the plan's partitions. The plan's brokers must be up."""
    known = client.node_ids()
    for broker in sorted({node for replicas in plan.replicas.values() for node in replicas}):
        if broker not in known:
            raise UserError(f"Unknown broker id {broker}")
    existing = _assignment(client, plan.topics)
    missing = [str(where) for where in sorted(plan.replicas) if where not in existing]
    if missing:
        problem = f"Unable to find partition: {', '.join(missing)}"
        raise UserError(exception_text(ErrorCode.unknown_topic_or_partition, problem))
    return {where: existing[where] for where in plan.replicas}


def _throttle(
    client: Client,
    wanted: ReassignOptions,
    plan: ReassignmentPlan,
    ongoing: Mapping[TopicPartition, Reassignment],
    current: Mapping[TopicPartition, list[NodeId]],
) -> None:
    between_brokers = wanted.throttle if wanted.throttle is not None else -1
    log_dirs = wanted.replica_alter_log_dirs_throttle
    within_brokers = log_dirs if log_dirs is not None else -1
    if between_brokers >= 0 or within_brokers >= 0:
        click.echo(replication_throttles.PERIODICALLY)
    if between_brokers >= 0:
        moves = replication_throttles.moves_of(ongoing, plan.replicas, current)
        replication_throttles.throttle_moves(client, moves, between_brokers)
    if within_brokers >= 0:
        brokers = [place.broker for place in plan.directories]
        replication_throttles.throttle_log_dirs(client, brokers, within_brokers)


def verify(client: Client, wanted: ReassignOptions) -> None:
    plan = _plan(wanted)
    ongoing = ongoing_reassignments(client)
    existing = _existing(client, plan.topics)
    click.echo("Status of partition reassignment:")
    for where, replicas in sorted(plan.replicas.items()):
        if where in ongoing:
            click.echo(f"Reassignment of partition {where} is still in progress.")
        elif (current := existing.get(where, [])) == replicas:
            click.echo(f"Reassignment of partition {where} is completed.")
        else:
            click.echo(
                f"There is no active reassignment of partition {where}, but replica set is "
                f"{_ids(current)} rather than {_ids(replicas)}."
            )
    directories = log_dir_moves.replica_directories(client, plan.directories)
    click.echo("\n".join(log_dir_moves.states(plan.directories, directories)))
    is_moving = any(one.future is not None for one in directories.values())
    if not ongoing and not is_moving and not wanted.preserve_throttles:
        replication_throttles.clear_throttles(client, plan)


def _existing(client: Client, topics: Collection[str]) -> dict[TopicPartition, list[NodeId]]:
    """The replicas of the partitions of these topics, of which some may not exist."""
    return {
        TopicPartition(topic.name or "", one.partition_index): list(one.replica_nodes)
        for topic in (client.metadata(tuple(topics)).topics if topics else ())
        for one in topic.partitions
    }


def cancel(client: Client, wanted: ReassignOptions) -> None:
    plan = _plan(wanted)
    ongoing = ongoing_reassignments(client)
    active = [where for where in sorted(plan.replicas) if where in ongoing]
    plural = "" if len(active) == 1 else "s"
    if active:
        errors = reassign(client, dict.fromkeys(active))
        if errors:
            plural = "" if len(errors) == 1 else "s"
            lines = [f"{where}: {message}" for where, message in sorted(errors.items())]
            head = f"Error cancelling partition reassignment{plural} for:"
            raise UserError("\n".join([head, *lines]))
        names = ",".join(map(str, active))
        click.echo(f"Successfully cancelled partition reassignment{plural} for: {names}")
    else:
        click.echo("None of the specified partition reassignments are active.")
    directories = log_dir_moves.replica_directories(client, plan.directories)
    moving = {
        place: one.current
        for place, one in directories.items()
        if one.future is not None and one.current is not None
    }
    if moving:
        log_dir_moves.start_moves(client, moving, wanted.timeout)
    else:
        click.echo("None of the specified partition moves are active.", nl=False)
    if not wanted.preserve_throttles:
        replication_throttles.clear_throttles(client, plan)


def list_(client: Client, wanted: ReassignOptions) -> None:
    ongoing = ongoing_reassignments(client)
    if not ongoing:
        click.echo("No partition reassignments found.")
        return
    click.echo("Current partition reassignments:")
    for where, one in sorted(ongoing.items()):
        adding = f" adding: {_ids(one.adding)}." if one.adding else ""
        removing = f" removing: {_ids(one.removing)}." if one.removing else ""
        click.echo(f"{where}: replicas: {_ids(one.replicas)}.{adding}{removing}")


def _ids(nodes: Collection[NodeId]) -> str:
    return ",".join(map(str, nodes))
