"""Finds the fastest build of this Python on the machine, with nothing but the standard library.

A broker's work is the interpreter's, and builds of one version differ by a third: distributions
build theirs with profile-guided optimisation, pyenv by default does not. As a program it says how
fast the Python is that runs it.
"""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

MUCH = 0.8
"""Another Python is worth it when it takes no more than this of the time."""

PATIENCE_S = 10
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def fastest() -> tuple[str, float] | None:
    """A program that is much faster than this one, and how many times; None if there is none."""
    own = seconds()
    found = [one for path in _candidates() if (one := _asked(path)) is not None]
    least, program = min(found, default=(own, ""))
    return (program, own / least) if least < MUCH * own else None


def seconds() -> float:
    """How long this Python takes for a bit of what programs do all day."""
    return min(_took() for _ in range(9))


def _took() -> float:
    began = time.perf_counter()
    _work()
    return time.perf_counter() - began


class _One:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        return self.value


def _work() -> int:
    seen: dict[int, _One] = {}
    total = 0
    for number in range(10_000):
        seen[number & 63] = _One(number)
        total += max(seen[number & 31].get(), 1)
    return total


def _candidates() -> list[str]:
    """All programs on the path that may be this version, each file once."""
    found: dict[str, str] = {}
    for directory in os.get_exec_path():
        for name in ("python3", f"python{VERSION}", "python"):
            path = Path(directory, name)
            if path.is_absolute() and path.is_file() and os.access(path, os.X_OK):
                found.setdefault(os.path.realpath(path), str(path))
    return list(found.values())


def _asked(path: str) -> tuple[float, str] | None:
    """How long that Python takes and what it is called; None if it cannot be used."""
    try:
        said = subprocess.run(
            [path, __file__],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=True,
            text=True,
        ).stdout
        version, took, program = said.rstrip("\n").split("\t")
        return (float(took), program) if version == VERSION else None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


if __name__ == "__main__":
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        sys.exit(1)  # no environment can be made with it
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    print(VERSION, seconds(), base, sep="\t")
