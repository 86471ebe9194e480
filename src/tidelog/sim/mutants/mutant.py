"""A mutant: a known wrong rule, and the story that shows its effect.

The code of a node has no flag or branch for mutants. During a run, `tidelog.sim.rules` replaces the
right function with the wrong function.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidelog.sim.rules import Replacement, Rules


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    faults: tuple[str, ...]
    """The faults that the mutant causes, by their numbers in docs/faults.md."""
    wrong: str
    """The wrong rule in one sentence."""
    replacements: Callable[[], Iterable[Replacement]]
    """Creates new replacements for every run, because some wrong rules keep state."""
    story: str
    """The name of the story that detects the mutant."""

    def rules(self) -> Rules:
        """The replacements for one run."""
        return Rules(self.name, tuple(self.replacements()))
