"""`tidelog demo acks`: shows with which settings of acks and replicas records are lost."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from tidelog.cli.demos.acks_trial import CELLS, RECORDS, AcksTrial, Cell
from tidelog.cli.demos.demo_load import Tally
from tidelog.cli.demos.screen import Screen

GAP = "  "
WIDTHS = (4, 8, 7, 6, 6, 6, 6)
INDENT = sum(WIDTHS) + len(GAP) * len(WIDTHS)
NARROWEST = 40


class TrialRow(NamedTuple):
    """Whether a combination of settings loses acknowledged records in each trial, and why."""

    at_once: bool
    after_lag: bool
    why: str


def expected(cell: Cell) -> TrialRow:
    """The known result of a combination of settings, which the trials must confirm."""
    match cell:
        case Cell(acks=0, replicas=1):
            return TrialRow(True, True, "The producer awaits no answer, and the only copy is gone.")
        case Cell(acks=0):
            return TrialRow(
                True, True, "The producer awaits no answer; the new leader lacks the records."
            )
        case Cell(acks=1, replicas=1):
            return TrialRow(True, True, "The leader acknowledged, and had the only copy.")
        case Cell(acks=1, min_isr=1):
            return TrialRow(
                True, True, "Only the leader had the records when it acknowledged them."
            )
        case Cell(acks=1):
            return TrialRow(True, True, "The same: min.insync.replicas applies to acks=all only.")
        case Cell(replicas=1, min_isr=1):
            return TrialRow(
                True, True, "The leader is the whole ISR, so acks=all waits for no other replica."
            )
        case Cell(replicas=1):
            return TrialRow(
                True, True, "The same: min.insync.replicas is at most the number of replicas."
            )
        case Cell(min_isr=1):
            return TrialRow(
                False,
                True,
                "The leader waits for the followers while they are in the ISR. Once they have left"
                " it, the leader acknowledges alone, and the records are lost with it.",
            )
        case _:
            return TrialRow(
                False,
                False,
                "A write is acknowledged only with two copies. The producer got no answer, and"
                " sent the records again to the new leader.",
            )


@click.command("acks", short_help="Measure which settings lose records when a leader dies.")
def acks() -> int:
    """Kill a leader before its followers have its records, for every combination of settings.

    The combinations are acks 0, 1 and all, 1 and 3 replicas, and min.insync.replicas 1 and 2. The
    demo holds back the followers' fetches and kills the leader, which stays down. In the first
    trial the followers are still in the ISR; in the second they have left it. LOST counts the
    acknowledged records that cannot be read from the remaining brokers. The status is 0 if each
    combination has the expected result. The demo takes about half a minute.
    """
    screen = Screen()
    screen.say("First trial: the leader dies while its followers are in the ISR.")
    at_once = AcksTrial(screen.say, has_lagged=False).run()
    screen.say("Second trial: the leader dies after its followers have left the ISR.")
    after_lag = AcksTrial(screen.say, has_lagged=True).run()
    click.echo("\n" + "\n".join(table(at_once, after_lag)))
    surprises = [cell for cell in CELLS if not is_as_expected(cell, at_once[cell], after_lag[cell])]
    for cell in surprises:
        click.echo(f"Unexpected result: {cell.topic}")
    if not surprises:
        click.echo(f"\nAll {len(CELLS)} combinations have the expected result.")
    return 1 if surprises else 0


def is_as_expected(cell: Cell, at_once: Tally, after_lag: Tally) -> bool:
    row = expected(cell)
    return _is(at_once, row.at_once) and _is(after_lag, row.after_lag)


def _is(found: Tally, loses: bool) -> bool:
    lost = found.acknowledged if loses else 0
    return found.lost == lost and found.duplicated == 0 and (found.acknowledged > 0 or not loses)


def table(at_once: Mapping[Cell, Tally], after_lag: Mapping[Cell, Tally]) -> Iterator[str]:
    """The table, with one row per combination. The last column has an explanation, wrapped."""
    yield " " * sum(WIDTHS[:3], 3 * len(GAP)) + "KILLED AT ONCE  FALLEN BEHIND"
    yield _line(("ACKS", "REPLICAS", "MIN ISR", "ACKED", "LOST", "ACKED", "LOST")) + "WHY"
    for cell in CELLS:
        one, other = at_once[cell], after_lag[cell]
        numbers = (one.acknowledged, one.lost, other.acknowledged, other.lost)
        cells = (cell.acks_name, str(cell.replicas), str(cell.min_isr), *map(str, numbers))
        first, *more = _wrapped(expected(cell).why)
        yield _line(cells) + first
        yield from (" " * INDENT + line for line in more)
    yield ""
    yield f"{RECORDS} records were sent to each topic. Killed at once: when the leader died, its"
    yield "followers were in the ISR. Fallen behind: its followers had left the ISR."


def _line(cells: tuple[str, ...]) -> str:
    return "".join(cell.rjust(width) + GAP for cell, width in zip(cells, WIDTHS, strict=True))


def _wrapped(sentence: str) -> list[str]:
    room = shutil.get_terminal_size((100, 24)).columns - INDENT
    return textwrap.wrap(sentence, max(NARROWEST, room))
