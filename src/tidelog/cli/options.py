"""Options that several commands share."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

from tidelog.cli.finding import DEFAULT_BOOTSTRAP, found_bootstrap
from tidelog.client.client import Client

NOT_GIVEN = f"the running cluster, or {DEFAULT_BOOTSTRAP}"
PATIENCE_SECONDS = 4.0
"""How long a command waits for an answer before it reports the node as stuck."""

A_DAY_SECONDS = 86_400

F = TypeVar("F", bound=Callable[..., Any])


def tell(sentence: str) -> None:
    """Print a sentence on standard error, separate from the output of the command."""
    click.echo(f"tidelog: {sentence}", err=True)


def interval(default: float) -> Callable[[F], F]:
    return click.option(
        "--interval",
        default=default,
        show_default=True,
        metavar="SECONDS",
        callback=_can_be_waited,
        help="The time between two queries.",
    )


def _can_be_waited(ctx: click.Context, param: click.Parameter, seconds: float) -> float:
    if not 0 < seconds <= A_DAY_SECONDS:  # also refuses nan
        raise click.BadParameter(
            f"{seconds:g} is not a number of seconds above 0, up to {A_DAY_SECONDS} (a day)"
        )
    return seconds


def bootstrap_server(command: F) -> F:
    return click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        default=found_bootstrap,
        show_default=NOT_GIVEN,
        envvar="TIDELOG_BOOTSTRAP_SERVER",
        show_envvar=True,
        help="The addresses of brokers.",
    )(command)


def bootstrap(command: F) -> F:
    """Add options for the addresses of brokers or controllers, which `connect` uses."""
    command = click.option(
        "--bootstrap-controller",
        metavar="HOST:PORT,...",
        help="Ask the controllers instead, on their own listener.",
    )(command)
    return click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar="TIDELOG_BOOTSTRAP_SERVER",
        show_envvar=True,
        help=f"The addresses of brokers.  [default: {NOT_GIVEN}]",
    )(command)


def connect(server: str | None, controller: str | None) -> tuple[Client, bool]:
    """Return a client with a short timeout, and whether it connects to controllers."""
    if controller is None:
        return Client(server or found_bootstrap(), PATIENCE_SECONDS), False
    return Client(controller, PATIENCE_SECONDS), True


def command_config(*flags: str) -> Callable[[F], F]:
    return click.option(
        *flags,
        "command_config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        expose_value=False,
        help="Accepted for scripts written for Kafka, and ignored: only PLAINTEXT works yet.",
    )


def is_given(value: object) -> bool:
    """Whether an option is on the command line; 0 and an empty text are values."""
    return value is not None and value is not False and value != ()


def refuse_misplaced(
    action: str, given: Mapping[str, object], only_with: Mapping[str, Collection[str]]
) -> None:
    """Refuse options that do not go with the action; `only_with` has the actions of an option."""
    for option, actions in only_with.items():
        if is_given(given[option]) and action not in actions:
            raise click.UsageError(f"{flag(option)} does not go with {flag(action)}")


def flag(name: str) -> str:
    """The option of a parameter: `--dry-run` for `dry_run`."""
    return f"--{name.replace('_', '-')}"


def key_value(option: str, text: str, *, strip: bool = True) -> tuple[str, str]:
    """Parse `key=value`. The value may contain further equals signs."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"{option}: {text!r} is not name=value")
    return key.strip(), value.strip() if strip else value
