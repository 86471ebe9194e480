"""Scenarios as text: commands and their answers, compared line by line.

A transcript is a sequence of blocks: comments (`#`), one command, a line of dashes, and the answer
up to the next empty line. `pytest --rewrite` records the answers again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

DASHES = "----"

Respond: TypeAlias = Callable[[str], str]


class Words:
    """The words of a command: `name=value`, or flags. A word that no code reads is an error."""

    def __init__(self, line: str) -> None:
        self.command, *words = line.split()
        self._values = dict(word.partition("=")[::2] for word in words)
        self._unread = set(self._values)

    def __contains__(self, name: str) -> bool:
        self._unread.discard(name)
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str:
        self._unread.discard(name)
        return self._values[name] if default is None else self._values.get(name, default)

    def list(self, name: str, default: str | None = None) -> list[str]:
        text = self.text(name, default)
        return text.split(",") if text else []

    def number(self, name: str, default: int | None = None) -> int:
        return int(self.text(name, None if default is None else str(default)))

    def numbers(self, name: str, default: str | None = None) -> tuple[int, ...]:
        return tuple(map(int, self.list(name, default)))

    def check_all_read(self) -> None:
        assert not self._unread, f"{self.command} knows no {sorted(self._unread)}"


def transcripts(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.txt"))


def play(text: str, respond: Respond) -> str:
    """Run the commands of a transcript, and return the transcript with the new answers."""
    lines = text.splitlines()
    played: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        played.append(line)
        position += 1
        if not line or line.startswith("#"):
            continue
        assert lines[position] == DASHES, f"expected {DASHES} after {line!r}"
        played += [DASHES, *respond(line).splitlines()]
        while position < len(lines) and lines[position]:
            position += 1
    return "\n".join(played) + "\n"


def check(path: Path, respond: Respond, *, rewrite: bool) -> None:
    """Run a transcript and compare its answers with the file; with `rewrite`, update the file."""
    text = path.read_text()
    played = play(text, respond)
    if rewrite:
        path.write_text(played)
    assert played.splitlines() == text.splitlines() or rewrite
