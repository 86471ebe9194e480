"""`tidelog stray`: lists and restores partition directories that a node has set aside (F58)."""

import os
from pathlib import Path

import click

from tidelog.log import names
from tidelog.log.checkpoints import partition_metadata
from tidelog.log.checkpoints.checkpoints import encode_id
from tidelog.log.directory import LogDirectory
from tidelog.model.user_error import UserError
from tidelog.runtime.dice import SystemDice
from tidelog.runtime.files.disk import RealDisk
from tidelog.runtime.process import CannotStart, lock_directory


@click.command("stray")
@click.option("--dir", "path", required=True, metavar="DIR", help="A log directory of the node.")
@click.argument("action", type=click.Choice(["list", "restore"]), default="list")
@click.argument("name", required=False)
def command(path: str, action: str, name: str | None) -> None:
    """List the partition directories that a node has set aside, and restore one of them.

    A node does not delete a directory that does not fit the cluster's metadata, but renames it to
    TOPIC-N.ID-stray. If no other replica has the records and the directory could be that of an
    earlier topic of the same name, the node does not rename it and does not serve the partition.

    `restore NAME` renames the directory back, and the node opens it as a replica of the topic that
    now has this name. Stop the node first. The node reads the whole replica, and the replica is not
    in sync before it has caught up with its leader. A stray that is not needed can be removed like
    any directory.
    """
    if not Path(path).is_dir():
        raise UserError(f"there is no directory {path}.")
    if (name is None) != (action == "list"):
        raise click.UsageError("`list` takes no name, and `restore` takes one")
    if name is None:
        _list(RealDisk(path))
    else:
        _restore(path, name)


def _list(disk: RealDisk) -> None:
    found = 0
    for name in disk.list(""):
        partition = names.stray_partition(name)
        is_stray = partition is not None
        partition = partition or names.partition_of(name)
        if partition is None:
            continue
        logs = [one for one in disk.list(name) if one.endswith(names.LOG)]
        size = sum(disk.size(f"{name}/{one}") for one in logs)
        read = partition_metadata.read(disk, name)
        is_damaged = not read.is_in_place(partition.partition) or read.topic_id is None
        if is_stray or (is_damaged and size > 0 and not read.is_restored):
            found += 1
            topic_id = "unknown" if read.topic_id is None else encode_id(read.topic_id)
            where = "set aside" if is_stray else "in its place, with a wrong partition.metadata"
            click.echo(f"{name}: {partition}, {size} bytes, topic id {topic_id}, {where}")
    if not found:
        click.echo("No directory has been set aside.")


def _restore(path: str, name: str) -> None:
    try:
        lock = lock_directory(path)
    except CannotStart as failure:
        raise UserError(f"{failure}: stop the node first.") from None
    try:
        disk = RealDisk(path)
        if not disk.list(name):
            raise UserError(f"{path} has no directory {name}, or it is empty.")
        restored = LogDirectory(disk, SystemDice()).restore(name)
        if restored is None:
            raise UserError(
                f"{name} cannot be restored: it is no partition directory, or there is another one "
                "with records for the partition."
            )
        click.echo(f"{restored} is restored; the node opens it at its next start.")
    finally:
        os.close(lock)
