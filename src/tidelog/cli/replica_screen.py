"""The table of replicas, alive in a terminal; in a pipe, one table after another."""

import sys
import time
from collections.abc import Callable, Sequence

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidelog.cli.replica_table import TIMED_HEADS, Row, timed_cells
from tidelog.cli.table import table

_RIGHT = ("LEADER", "WATERMARK", "REPLICA", "END OFFSET", "LAG", "BEHIND")
FRAME_LINES = 6
"""Of the screen, for what is not a row."""


def show(look: Callable[[], list[Row]], interval: float) -> None:
    """Look again and again, until Ctrl-C."""
    if not sys.stdout.isatty():
        while True:
            click.echo("\n".join([*table(TIMED_HEADS, list(map(timed_cells, look()))), ""]))
            time.sleep(interval)
    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(picture(look(), console.height - FRAME_LINES), refresh=True)
            time.sleep(interval)


def picture(shown: Sequence[Row], room: int) -> Table:
    """As many rows as there is room for, and below them what they come to."""
    made = Table(box=SIMPLE_HEAD, caption=_sum(shown, room), caption_justify="left", pad_edge=False)
    for head in TIMED_HEADS:
        made.add_column(head, justify="right" if head in _RIGHT else "left", no_wrap=True)
    for row in shown[:room]:
        made.add_row(*map(Text, timed_cells(row)), style=_style(row))
    return made


def _style(row: Row) -> str:
    if not row.is_in_sync:
        return "bold red"
    if row.is_behind:
        return "yellow"
    return "bold" if row.is_leader else ""


def _sum(shown: Sequence[Row], room: int) -> Text:
    out = sum(not row.is_in_sync for row in shown)
    told = "all in sync" if out == 0 else f"{out} out of sync"
    hidden = len(shown) - room
    more = f"; {hidden} more rows, --topic shows fewer" if hidden > 0 else ""
    clock = time.strftime("%H:%M:%S")
    return Text(f"{clock}  {len(shown)} replicas, {told}{more}. Ctrl-C ends.", style="dim")
