"""How far long work is: a bar in a terminal, a line now and then where there is none."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

import click

EVERY_SECONDS = 15.0


class Told(Protocol):
    def __call__(self, more: int, shown: str = "") -> None:
        """So much more is done; `shown` is what is worth a word."""


@contextmanager
def progress(label: str, length: int) -> Iterator[Told]:
    """All of it goes to standard error, so that a result can be sent on without it."""
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
            told = f"{self._label}: {share} % after {now - self._began:.0f} s"
            click.echo(f"{told}, {shown}" if shown else told, err=True)
