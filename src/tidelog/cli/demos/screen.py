"""The output of a demo: lines with the elapsed time, and a status line that is overwritten.

If the output is not a terminal, the status is printed as an ordinary line every few seconds.
"""

import shutil
import sys
import time
from collections.abc import Iterable

EVERY_SECONDS = 5.0
INDENT = " " * 8
_ERASE = "\r\x1b[K"


class Screen:
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._is_terminal = sys.stdout.isatty()
        self._status_at = self._began
        self._has_status = False

    def say(self, text: str) -> None:
        """Print a line that is not overwritten."""
        self._write(f"{self._elapsed():5.1f} s {text}")

    def title(self, text: str) -> None:
        """Print a heading for the next lines."""
        for line in ("", text, "-" * len(text)):
            self._write(line)

    def show(self, lines: Iterable[str]) -> None:
        """Print lines, such as a table, that are not overwritten and have no time."""
        for line in lines:
            self._write(f"{INDENT}{line}".rstrip())

    def status(self, text: str) -> None:
        """Show a status line, which the next printed line overwrites."""
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write(_ERASE + f"{self._elapsed():5.1f} s {text}"[:width])
            sys.stdout.flush()
            self._has_status = True
        elif time.monotonic() - self._status_at >= EVERY_SECONDS:
            self.say(text)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _write(self, line: str) -> None:
        if self._has_status:
            sys.stdout.write(_ERASE)
            self._has_status = False
        self._status_at = time.monotonic()
        print(line, flush=True)
