"""Shows the progress of long work: a bar on a terminal, otherwise a line every few seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

import click

EVERY_SECONDS = 15.0


class ShowProgress(Protocol):
    def __call__(self, more: int, shown: str = "") -> None:
        """Count `more` units as done, and print `shown` next to the progress."""


@contextmanager
def progress(label: str, length: int) -> Iterator[ShowProgress]:
    """Show the completed share and the remaining time on standard error."""
    if sys.stderr.isatty():
        with click.progressbar(
            length=length, label=label, file=sys.stderr, item_show_func=lambda shown: shown
        ) as bar:
            yield lambda more, shown="": bar.update(more, shown or None)
    else:
        yield _Lines(label, length)


class _Lines:
    def __init__(self, label: str, length: int) -> None:
        self._label, self._length = label, length
        self._done = 0
        self._began = self._told_at = monotonic()

    def __call__(self, more: int, shown: str = "") -> None:
        self._done += more
        now = monotonic()
        if now - self._told_at >= EVERY_SECONDS:
            self._told_at = now
            share = 100 * self._done // max(1, self._length)
            spent = now - self._began
            told = f"{self._label}: {share} % after {spent:.0f} s"
            if 0 < self._done < self._length:
                left = spent * (self._length - self._done) / self._done
                told = f"{told}, about {left:.0f} s left"
            click.echo(f"{told}, {shown}" if shown else told, err=True)
