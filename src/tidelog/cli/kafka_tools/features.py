"""`tidelog features`: shows and changes feature levels, as kafka-features.sh does."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tidelog.cli import options
from tidelog.cli.finding import found_bootstrap
from tidelog.client.administration.feature_admin import (
    Features,
    UpgradeType,
    describe_features,
    update_features,
)
from tidelog.client.client import Client
from tidelog.client.releases import (
    METADATA_VERSION,
    METADATA_VERSIONS,
    NEWEST,
    level_name,
    metadata_level,
    release_levels,
)
from tidelog.model.user_error import UserError

LARGEST_LEVEL = 2**15 - 1

F = TypeVar("F", bound=Callable[..., Any])


def bootstrap(command: F) -> F:
    """The addresses of brokers. As in Kafka's tool, they may also stand before the subcommand."""
    return click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar="TIDELOG_BOOTSTRAP_SERVER",
        show_envvar=True,
        help=f"The addresses of brokers.  [default: {options.NOT_GIVEN}]",
    )(command)


dry_run_option = click.option("--dry-run", is_flag=True, help="Check the change only.")
unsafe_option = click.option("--unsafe", is_flag=True, help="Even if metadata is lost for good.")
metadata_option = click.option(
    "--metadata", metavar="VERSION", help="The level of metadata.version, as 4.0-IV3; deprecated."
)
feature_option = click.option(
    "--feature", multiple=True, metavar="NAME=LEVEL", help="A feature and its level; repeatable."
)
release_option = click.option(
    "--release-version", metavar="VERSION", help="All levels of this release of Kafka."
)


@click.group("features")
@bootstrap
@options.command_config("--command-config")
@click.pass_context
def command(context: click.Context, bootstrap_server: str | None) -> None:
    """Show and change the feature levels of the cluster, with the flags of kafka-features.sh."""
    context.obj = bootstrap_server


def _connected(context: click.Context, bootstrap_server: str | None) -> Client:
    server = bootstrap_server or context.obj or found_bootstrap()
    return Client(server, tell=options.tell)


@command.command("describe")
@bootstrap
@click.pass_context
def describe(context: click.Context, bootstrap_server: str | None) -> None:
    """Show the supported and the finalized level of each feature."""
    with _connected(context, bootstrap_server) as client:
        for line in lines(describe_features(client)):
            click.echo(line)


def lines(features: Features) -> list[str]:
    epoch = "-" if features.epoch is None else features.epoch
    return [
        f"Feature: {name:<40}  "
        f"SupportedMinVersion: {level_name(name, low):<15}  "
        f"SupportedMaxVersion: {level_name(name, high):<15}  "
        f"FinalizedVersionLevel: {level_name(name, finalized):<15}  "
        f"Epoch: {epoch}"
        for name, finalized, (low, high) in features.ranges
    ]


@command.command("upgrade")
@bootstrap
@metadata_option
@feature_option
@release_option
@dry_run_option
@click.pass_context
def upgrade(
    context: click.Context,
    bootstrap_server: str | None,
    metadata: str | None,
    feature: tuple[str, ...],
    release_version: str | None,
    dry_run: bool,
) -> None:
    """Raise feature levels."""
    levels = wanted_levels("upgrade", metadata, feature, release_version)
    if release_version is not None:
        levels = {name: level for name, level in levels.items() if level > 0}
    with _connected(context, bootstrap_server) as client:
        _update(client, "upgrade", levels, UpgradeType.UPGRADE, dry_run=dry_run)


@command.command("downgrade")
@bootstrap
@metadata_option
@feature_option
@release_option
@unsafe_option
@dry_run_option
@click.pass_context
def downgrade(
    context: click.Context,
    bootstrap_server: str | None,
    metadata: str | None,
    feature: tuple[str, ...],
    release_version: str | None,
    unsafe: bool,
    dry_run: bool,
) -> None:
    """Lower feature levels."""
    levels = wanted_levels("downgrade", metadata, feature, release_version)
    with _connected(context, bootstrap_server) as client:
        _update(client, "downgrade", levels, _downward(unsafe), dry_run=dry_run)


@command.command("disable")
@bootstrap
@click.option("--feature", multiple=True, metavar="NAME", help="A feature; repeatable.")
@unsafe_option
@dry_run_option
@click.pass_context
def disable(
    context: click.Context,
    bootstrap_server: str | None,
    feature: tuple[str, ...],
    unsafe: bool,
    dry_run: bool,
) -> None:
    """Set features to level 0."""
    levels: dict[str, int] = {}
    for name in feature:
        _add(levels, name, 0)
    if not levels:
        raise UserError("You must specify at least one feature to disable")
    with _connected(context, bootstrap_server) as client:
        _update(client, "disable", levels, _downward(unsafe), dry_run=dry_run)


@command.command("version-mapping")
@click.option(
    "--release-version", default=NEWEST, show_default=True, metavar="VERSION", help="The release."
)
def version_mapping(release_version: str) -> None:
    """Show the feature levels of a release of Kafka."""
    for name, level in release_levels(_metadata_level(release_version)).items():
        shown = f" ({release_version})" if name == METADATA_VERSION else ""
        click.echo(f"{name}={level}{shown}")


def _downward(unsafe: bool) -> UpgradeType:
    return UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE


def wanted_levels(
    action: str, metadata: str | None, feature: tuple[str, ...], release: str | None
) -> dict[str, int]:
    """The level of each feature that the options name."""
    if release is not None:
        if metadata is not None or feature:
            raise UserError("Can not specify `release-version` with other feature flags.")
        return release_levels(_metadata_level(release))
    levels: dict[str, int] = {}
    if metadata is not None:
        click.echo(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = _metadata_level(metadata)
    for text in feature:
        _add(levels, *_name_and_level(text))
    if not levels:
        raise UserError(f"You must specify at least one feature to {action}")
    return levels


def _name_and_level(text: str) -> tuple[str, int]:
    problem = f"Can't parse feature=level string {text}"
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise UserError(f"{problem}: equals sign not found.")
    if not level.removeprefix("-").isdecimal() or abs(int(level)) > LARGEST_LEVEL:
        raise UserError(f"{problem}: unable to parse {level} as a short.")
    return name, int(level)


def _add(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise UserError(f"Feature {name} was specified more than once.")
    levels[name] = level


def _metadata_level(version: str) -> int:
    level = metadata_level(version)
    if level is None:
        raise UserError(
            f"Unknown metadata.version '{version}'. Supported metadata.version are: "
            f"{', '.join(METADATA_VERSIONS)}"
        )
    return level


def _update(
    client: Client, action: str, levels: dict[str, int], how: UpgradeType, *, dry_run: bool
) -> None:
    """Change the levels and print the outcome; if a change failed, end with an error."""
    outcome = update_features(client, levels, how, dry_run=dry_run)
    for name, problem in sorted(outcome.items()):
        target = "" if action == "disable" else f" to {levels[name]}"
        if problem is None:
            verb = "can be" if dry_run else "was"
            click.echo(f"{name} {verb} {action}d{target}.")
        else:
            verb = "Can not" if dry_run else "Could not"
            click.echo(f"{verb} {action} {name}{target}. {problem}")
    failed = sum(problem is not None for problem in outcome.values())
    if failed:
        raise UserError(f"{failed} out of {len(outcome)} operation(s) failed.")
