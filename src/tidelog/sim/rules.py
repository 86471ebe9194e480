"""Which rules the simulated nodes play by: Kafka's of today, but for those that a run replaces.

The source has no branch for a wrong rule. A run that is to show what a rule is for puts another
function, method or class in its place, in the module that uses it, and takes it out again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Replacement:
    """One name and what stands there instead."""

    target: str
    """`module:name` or `module:Class.name`, where the name is looked up when it is used."""
    by: Any


@dataclass(frozen=True)
class Rules:
    """The replacements of one run; none: the rules as they are."""

    name: str = ""
    replacements: tuple[Replacement, ...] = ()


TODAYS = Rules()


@contextmanager
def wired(rules: Rules) -> Iterator[None]:
    """Play by these rules until the end of the block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for replacement in rules.replacements:
            holder, name = _place(replacement.target)
            before.append((holder, name, vars(holder)[name]))
            setattr(holder, name, replacement.by)
        yield
    finally:
        for holder, name, original in reversed(before):
            setattr(holder, name, original)


def _place(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    holder: Any = import_module(module)
    *outer, name = path.split(".")
    for one in outer:
        holder = getattr(holder, one)
    assert name in vars(holder), f"{target}: there is no such rule"
    return holder, name
