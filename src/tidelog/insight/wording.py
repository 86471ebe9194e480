"""Formats numbers, times and lists for people."""

import textwrap
import time
from collections.abc import Sequence

from tidelog.model.ids import Millis, NodeId

INDENT = "  "
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def brokers(ids: Sequence[NodeId], *, word: bool = True, joined: str = "and") -> str:
    """`broker 1`, `brokers 1, 2 and 3`, `broker 1 or 2`, `no broker`."""
    if not ids:
        return "no broker"
    *first, last = map(str, ids)
    listed = f"{', '.join(first)} {joined} {last}" if first else last
    if not word:
        return listed
    return f"broker{'s' if first and joined == 'and' else ''} {listed}"


def duration(ms: Millis) -> str:
    """A duration in its largest suitable unit, with few digits."""
    if ms < _SECOND:
        return f"{ms} ms"
    if ms < 10 * _SECOND:
        return f"{ms / _SECOND:.1f} s"
    if ms < 2 * _MINUTE:
        return f"{ms / _SECOND:.0f} s"
    if ms < 2 * _HOUR:
        return f"{ms / _MINUTE:.0f} min"
    if ms < 2 * _DAY:
        return f"{ms / _HOUR:.0f} h"
    return f"{ms / _DAY:.0f} days"


def moment(then: Millis, now: Millis) -> str:
    """`14:03:22 (12 s ago)` in local time, with the date if the moment is not today."""
    told, today = time.localtime(then / 1000), time.localtime(now / 1000)
    is_today = told[:3] == today[:3]
    clock = time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", told)
    return f"{clock} ({duration(max(0, now - then))} ago)"


def size(amount: float) -> str:
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def wrapped(line: str, width: int) -> str:
    """Wrap a line to the width and keep its indentation."""
    indent = INDENT if line.startswith(INDENT) else ""
    return textwrap.fill(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
