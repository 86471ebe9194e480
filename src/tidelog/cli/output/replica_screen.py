"""Shows the table of replicas, which is refreshed in place on a terminal and repeated in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidelog.cli.output.table import table
from tidelog.insight.replica_table import TIMED_HEADS, ReplicaRow, timed_cells
from tidelog.model.user_error import UserError

_RIGHT = ("LEADER", "WATERMARK", "REPLICA", "END OFFSET", "LAG", "BEHIND")
FRAME_LINES = 8
"""The number of screen lines that are not rows. An error message may take three of them."""


class Seen(NamedTuple):
    """The rows of the last successful read, and the error if a later read has failed."""

    rows: list[ReplicaRow]
    failure: str | None = None


def show(look: Callable[[], list[ReplicaRow]], interval: float) -> None:
    """Read and show the rows repeatedly, until Ctrl-C."""
    if not sys.stdout.isatty():
        for seen in looks(look):
            _print(seen)
            time.sleep(interval)
        return
    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for seen in looks(look):
            live.update(picture(seen, console.height - FRAME_LINES), refresh=True)
            time.sleep(interval)


def looks(look: Callable[[], list[ReplicaRow]]) -> Iterator[Seen]:
    """Read the rows repeatedly, and continue after an error, because nodes may fail meanwhile.

    If the first read fails, raise the error, because the address may be wrong.
    """
    rows = look()
    yield Seen(rows)
    while True:
        failure = None
        try:
            rows = look()
        except UserError as failed:
            failure = str(failed).rstrip(".")
        yield Seen(rows, failure)


def _print(seen: Seen) -> None:
    if seen.failure is not None:
        click.echo(f"tidelog: {seen.failure}; trying again.", err=True)
    else:
        click.echo("\n".join([*table(TIMED_HEADS, list(map(timed_cells, seen.rows))), ""]))


def picture(seen: Seen, room: int) -> Table:
    """A table of as many rows as fit on the screen, with a summary or an error below."""
    caption = _sum(seen.rows, room) if seen.failure is None else _failed(seen.failure)
    made = Table(box=SIMPLE_HEAD, caption=caption, caption_justify="left", pad_edge=False)
    for head in TIMED_HEADS:
        made.add_column(head, justify="right" if head in _RIGHT else "left", no_wrap=True)
    for row in seen.rows[: max(0, room)]:
        made.add_row(*map(Text, timed_cells(row)), style=_style(row))
    return made


def _style(row: ReplicaRow) -> str:
    if not row.is_in_sync:
        return "bold red"
    if row.is_behind:
        return "yellow"
    return "bold" if row.is_leader else ""


def _sum(shown: Sequence[ReplicaRow], room: int) -> Text:
    out = sum(not row.is_in_sync for row in shown)
    told = "all in sync" if out == 0 else f"{out} out of sync"
    hidden = len(shown) - room
    more = f"; {hidden} more rows, --topic shows fewer" if hidden > 0 else ""
    return Text(f"{_clock()}  {len(shown)} replicas, {told}{more}. Ctrl-C ends.", style="dim")


def _failed(failure: str) -> Text:
    text = f"{_clock()}  {failure}. These rows are out of date; trying again. Ctrl-C ends."
    return Text(text, style="bold red")


def _clock() -> str:
    return time.strftime("%H:%M:%S")
