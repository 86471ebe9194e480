"""Replaces rules of simulated nodes for the duration of a run.

The code of a node has no branch for a wrong rule. To show what happens without a rule, a run
replaces a function, method or class in the module that uses the rule. The original is restored
afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Replacement:
    """A name and its replacement."""

    target: str
    """`module:name` or `module:Class.name`, in the module that looks the name up."""
    by: Any


@dataclass(frozen=True)
class Rules:
    """The replacements of one run. Without replacements, the nodes run unchanged."""

    name: str = ""
    replacements: tuple[Replacement, ...] = ()


TODAYS = Rules()


@contextmanager
def applied_rules(rules: Rules) -> Iterator[None]:
    """Apply these rules until the end of the block."""
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
