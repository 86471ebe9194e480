"""A mutant: a known wrong rule, and the story that shows its effect.

The source has neither a flag nor a branch for it: `tidelog.sim.rules` puts the wrong function in
the place of the right one for as long as a run takes.
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
    """What is wrong, in one sentence."""
    replacements: Callable[[], Iterable[Replacement]]
    """Created for every run, because some wrong rules keep state."""
    story: str
    """The directed scenario that catches it."""

    def rules(self) -> Rules:
        """For one run."""
        return Rules(self.name, tuple(self.replacements()))
