"""Stories as text: commands and what came of them, checked line by line.

A transcript is a sequence of blocks: comments (`#`), one command, a line of dashes, the answer up
to the next empty line. `pytest --rewrite` records the answers anew.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

DASHES = "----"

Respond: TypeAlias = Callable[[str], str]


def transcripts(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.txt"))


def play(text: str, respond: Respond) -> str:
    """The transcript with the answers that are given now."""
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
    """Play a transcript; the answers must be those that it holds, or are recorded."""
    text = path.read_text()
    played = play(text, respond)
    if rewrite:
        path.write_text(played)
    assert played.splitlines() == text.splitlines() or rewrite
