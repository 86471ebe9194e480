"""Finds the fastest build of this Python on the machine, with nothing but the standard library.

A broker's work is the interpreter's, and builds of one version differ by a third: distributions
build theirs with profile-guided optimisation, pyenv by default does not. As a program it says how
fast the Python is that runs it.
"""

import os
import subprocess
import sys
import sysconfig
import time
from importlib.util import find_spec
from typing import NamedTuple

MUCH = 0.8
"""Another Python is worth it when it takes no more than this of the time."""

PATIENCE_S = 2
ROUNDS = 2
NEEDED = ("venv", "ensurepip", "ssl", "zlib", "_ctypes")
"""What a Python must have so that an environment can be made with it; builds by hand may not."""

ABI = str(sysconfig.get_config_var("SOABI"))
"""Same version, same machine, same implementation: what the locks were tried with stays good."""


class Build(NamedTuple):
    seconds: float
    """How long it takes for a bit of what programs do all day."""
    version: str
    program: str


def faster_than(own: str) -> tuple[Build, Build] | None:
    """This program and a much faster build of it, if there is one."""
    found: dict[str, Build] = {}
    for path in [own, *_candidates()]:
        build = _ask(path)
        if build is not None:
            found[build.program] = build
    if own not in found:
        return None
    for _ in range(ROUNDS):
        # In turns, since a machine may be busy now and idle a moment later; what was found on the
        # path may be a script, so it is the program itself that has to answer from here on.
        for program, before in list(found.items()):
            again = _ask(program)
            if again is None or again.program != program:
                found.pop(program)
            else:
                found[program] = min(before, again)
    if own not in found:
        return None
    best = min(found.values())
    return (found[own], best) if best.seconds < MUCH * found[own].seconds else None


def _candidates() -> list[str]:
    """All programs on the path that may be this Python, each file once."""
    found: dict[str, str] = {}
    for directory in os.get_exec_path():
        for name in ("python3", f"python{sys.version_info[0]}.{sys.version_info[1]}", "python"):
            path = os.path.join(directory, name)
            if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
                found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _ask(path: str) -> Build | None:
    """What that Python says of itself; None if it cannot be used."""
    try:
        said = subprocess.run(
            [path, __file__],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=True,
            text=True,
        ).stdout
        abi, seconds, version, program = said.rstrip("\n").split("\t")
        return Build(float(seconds), version, program) if abi == ABI else None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


# -- asked -----------------------------------------------------------------------------------------


class _One:
    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        return self.value


def _took() -> float:
    began = time.perf_counter()
    seen: dict[int, _One] = {}
    total = 0
    for number in range(10_000):
        seen[number & 63] = _One(number)
        total += max(seen[number & 31].get(), 1)
    return time.perf_counter() - began


def base_python() -> str:
    """The interpreter under its full versioned name.

    So an upgrade of the system's Python leaves a dangling link, which is noticed, and not another
    version behind the same name.
    """
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


if __name__ == "__main__":
    if any(find_spec(name) is None for name in NEEDED):
        sys.exit(1)
    seconds = min(_took() for _ in range(9))
    print(ABI, seconds, sys.version.split()[0], base_python(), sep="\t")
