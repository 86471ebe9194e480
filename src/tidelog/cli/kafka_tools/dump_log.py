"""`tidelog dump-log`: prints files of a log directory as kafka-dump-log.sh does."""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tidelog.cli.output import index_dump
from tidelog.cli.output.segment_dump import Detail, segment_lines
from tidelog.log import names
from tidelog.model.user_error import UserError

_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"

_BESIDE = {
    names.OFFSET_INDEX: index_dump.offset_index_lines,
    names.TIME_INDEX: index_dump.time_index_lines,
    names.TRANSACTION_INDEX: index_dump.transaction_index_lines,
    names.SNAPSHOT: index_dump.producer_snapshot_lines,
}


@click.command("dump-log")
@click.argument("files", nargs=-1, metavar="FILES...")
@click.option(
    "--files",
    "listed",
    metavar="FILE,...",
    help="The files, separated by commas, as in Kafka's tool.",
)
@click.option("--deep-iteration", is_flag=True, help="Show each record of a batch.")
@click.option("--print-data-log", is_flag=True, help="Also show keys and values.")
@click.option("--skip-record-metadata", is_flag=True, help="Show keys and values only.")
@click.option(
    "--cluster-metadata-decoder",
    is_flag=True,
    help="Show the records of __cluster_metadata as JSON.",
)
def command(
    files: tuple[str, ...],
    listed: str | None,
    deep_iteration: bool,
    print_data_log: bool,
    skip_record_metadata: bool,
    cluster_metadata_decoder: bool,
) -> None:
    """Print files of a log directory as they are on disk, without changing them.

    Reads segments (.log), indexes (.index, .timeindex, .txnindex), producer snapshots (.snapshot)
    and metadata snapshots (.checkpoint).
    """
    wanted = [*files, *filter(None, (listed or "").split(","))]
    if not wanted:
        raise click.UsageError("name at least one file")
    detail = Detail(deep_iteration, print_data_log, cluster_metadata_decoder, skip_record_metadata)
    for name in wanted:
        _check_that_it_is_a_file(Path(name))
        click.echo(f"Dumping {name}")
        for line in lines(Path(name), detail):
            click.echo(line)


def _check_that_it_is_a_file(path: Path) -> None:
    if not path.exists():
        raise UserError(f"{path}: there is no such file.")
    if path.is_dir():
        raise UserError(f"{path}: this is a directory; name files in it.")
    if not path.is_file():
        raise UserError(f"{path}: this is not a regular file.")


def lines(path: Path, detail: Detail) -> Iterator[str]:
    if path.name == BOOTSTRAP_SNAPSHOT:
        yield "KRaft bootstrap snapshot"
        yield from _segment(path, detail)
    elif found := _SNAPSHOT_NAME.fullmatch(path.name):
        yield f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"
        yield from _segment(path, detail)
    elif (base := names.offset_of(path.name, names.LOG)) is not None:
        yield f"Log starting offset: {base}"
        yield from _segment(path, detail)
    elif (base := names.offset_of(path.name, path.suffix)) is not None and path.suffix in _BESIDE:
        try:
            yield from _BESIDE[path.suffix](path.read_bytes(), base)
        except UserError as failure:
            raise UserError(f"{path}: {failure}") from None
    else:
        raise UserError(f"{path}: the name is not that of a segment, an index or a snapshot.")


def _segment(path: Path, detail: Detail) -> Iterator[str]:
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        segment = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    yield from segment_lines(segment, detail)
