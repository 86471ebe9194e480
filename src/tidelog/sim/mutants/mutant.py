"""A mutant: a known wrong rule, and the story that shows its effect.

The source has no flag and no branch for it: `tidelog.sim.rules` replaces the right function by the
wrong one during a run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidelog.sim.rules import Replacement, Rules


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    faults: tuple[str, ...]
    """The faults that it causes, by their numbers in docs/faults.md."""
    wrong: str
    """The wrong rule in one sentence."""
    replacements: Callable[[], Iterable[Replacement]]
    """Created for every run, because some wrong rules keep state."""
    story: str
    """The name of the story that detects it."""

    def rules(self) -> Rules:
        """The replacements for one run."""
        return Rules(self.name, tuple(self.replacements()))
