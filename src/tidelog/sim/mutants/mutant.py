"""A mutant: one known wrong rule in place of the right one, for as long as a simulated run takes.

The source has neither a flag nor a branch for it. The simulator puts another function where the
right one is looked up, and takes it away again; one that does not fit the place is refused.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """Another function, or property, under a name of a module or class."""

    owner: object
    name: str
    rule: Any


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    faults: tuple[str, ...]
    """The numbers that the catalogue gives to what it does wrong."""
    wrong: str
    """What is wrong, in one sentence."""
    rules: Callable[[], Iterable[Replacement]]
    """Made anew for every run, since some wrong rules remember."""
    story: str
    """The directed scenario that shows it."""

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Every node that runs meanwhile follows the wrong rule."""
        replaced: list[Replacement] = []
        try:
            for owner, name, rule in self.rules():
                right = inspect.getattr_static(owner, name)
                _check_fit(f"{self.name}: {name}", right, rule)
                setattr(owner, name, rule)
                replaced.append(Replacement(owner, name, right))
            yield
        finally:
            for owner, name, right in reversed(replaced):
                setattr(owner, name, right)


def _check_fit(place: str, right: Any, wrong: Any) -> None:
    if isinstance(right, property):
        assert isinstance(wrong, property), place
        return
    names = list(inspect.signature(right).parameters)
    assert names == list(inspect.signature(wrong).parameters), f"{place} takes {names}"
