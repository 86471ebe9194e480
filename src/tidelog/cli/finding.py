"""Finds the cluster for a command, if the command line does not name one."""

from pathlib import Path

from tidelog.clusters.control import NAME
from tidelog.clusters.running_clusters import listed, running_clusters
from tidelog.model.user_error import UserError

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_DIRECTORY = Path("tidelog-data")


def found_bootstrap() -> str:
    """The addresses of the cluster in the default directory, or of the only running cluster.

    If no cluster runs, return the default address. If several run and one of them has the default
    address, return the default address as well.
    """
    running = running_clusters()
    for one in running:
        if one.directory == DEFAULT_DIRECTORY.absolute():
            return one.bootstrap
    if len(running) == 1:
        return running[0].bootstrap
    if not running or any(DEFAULT_BOOTSTRAP in one.bootstrap.split(",") for one in running):
        return DEFAULT_BOOTSTRAP
    raise UserError(
        f"several clusters are running, in {listed(running)}: choose one with --bootstrap-server."
    )


def found_directory() -> Path:
    """The default directory, or the directory of the only running cluster.

    The directory of the running cluster is used only if no cluster runs in the default directory.
    """
    running = running_clusters()
    if len(running) == 1 and not (DEFAULT_DIRECTORY / NAME).exists():
        return running[0].directory
    return DEFAULT_DIRECTORY


def with_hint(failure: UserError) -> UserError:
    """The same error, with a hint that names the running clusters."""
    tried = str(failure)
    others = [
        one for one in running_clusters() if not any(at in tried for at in one.bootstrap.split(","))
    ]
    match others:
        case []:
            is_local = DEFAULT_BOOTSTRAP in tried
            hint = "`tidelog up` starts a cluster on this machine." if is_local else ""
        case [other]:
            hint = f"One is running in {listed(others)}: use --bootstrap-server {other.bootstrap}."
        case _:
            hint = f"Clusters are running in {listed(others)}: choose one with --bootstrap-server."
    return UserError(f"{tried} {hint}".rstrip())
